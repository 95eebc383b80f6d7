#include "view/server/view_api.hpp"

#include "core/embedded.hpp"
#include "core/hash.hpp"
#include "core/number_range.hpp"
#include "view/server/city_json.hpp"
#include "view/server/cube_message.hpp"
#include "view/server/ground_message.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::embedded {
std::span<const Text> web_files();
}

namespace citysplat::view {

namespace {

constexpr std::string_view kForGood = "private, max-age=31536000, immutable";

std::string hash_of_assets() {
    Hasher hasher;
    for (const embedded::Text& file : embedded::web_files()) hasher.text(file.name).text(file.content);
    return hasher.finish().hex();
}

const embedded::Text* asset_named(std::string_view name) {
    for (const embedded::Text& file : embedded::web_files())
        if (file.name == name) return &file;
    return nullptr;
}

std::string_view type_of(std::string_view name) {
    if (name.ends_with(".html")) return "text/html; charset=utf-8";
    if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
    if (name.ends_with(".css")) return "text/css; charset=utf-8";
    if (name.ends_with(".svg")) return "image/svg+xml";
    return "text/plain; charset=utf-8";
}

/// The parts of a text between separators; at most `most`, or nothing.
std::optional<std::vector<std::string_view>> split(std::string_view text, char separator, std::size_t most) {
    std::vector<std::string_view> parts;
    for (;;) {
        if (parts.size() == most) return std::nullopt;
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

/// "1.5,2,-3"
std::optional<Vec3d> vec_from(std::string_view text) {
    const auto parts = split(text, ',', 3);
    if (!parts || parts->size() != 3) return std::nullopt;
    std::array<double, 3> v{};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto value = parse_number((*parts)[i]);
        if (!value || !std::isfinite(*value)) return std::nullopt;
        v[i] = *value;
    }
    return Vec3d{v[0], v[1], v[2]};
}

bool on_earth(Vec3d v) {
    return std::fabs(v.x) <= kMaxWorld_m && std::fabs(v.y) <= kMaxWorld_m && std::fabs(v.z) <= kMaxWorld_m;
}

std::optional<std::int64_t> generation_number(std::string_view text) {
    const auto number = parse_whole<std::int64_t>(text);
    return number && *number > 0 ? number : std::nullopt;
}

Response not_retained() { return text_response(404, "this generation is not retained any more"); }

Response nothing_here() { return text_response(404, "there is nothing at this address"); }

}  // namespace

ViewApi::ViewApi(const ShownCity& city, const ApiOptions& options)
    : gate_(options.port, options.token),
      sets_(std::make_shared<ShownGeneration>(city, options.levels, options.pick_bytes), options.generations,
            options.levels, options.pick_bytes),
      scans_(options.scans),
      distances_(options.distances),
      distance_key_(Gate::new_token()),  // another file may have the same name tomorrow
      assets_hash_(hash_of_assets()) {
    if (distances_) {
        splat::PyramidOptions in_memory = options.levels;
        in_memory.store = nullptr;
        distance_levels_.emplace(*distances_, in_memory);
    }
    if (options.check_tiles) check_.emplace(city.tiles);
}

bool ViewApi::is_slow(std::string_view target) {
    constexpr std::array<std::string_view, 5> kSlow{"/api/cube/", "/api/diff/", "/api/ground/", "/api/pick",
                                                    "/api/scan/"};
    return std::any_of(kSlow.begin(), kSlow.end(),
                       [&](std::string_view prefix) { return target.starts_with(prefix); });
}

Response ViewApi::answer(const Request& request, const CancelToken& cancel) {
    Response response;
    try {
        const bool needs_token = request.target.starts_with("/api/");
        if (auto refusal = gate_.refuse(request, needs_token))
            response = std::move(*refusal);
        else
            response = route(request, cancel);
    } catch (const Interrupted&) {
        response = text_response(503, "the viewer is ending");
    } catch (const std::exception& e) {
        response = text_response(500, e.what());
    }
    add_protection(response);
    return response;
}

Response ViewApi::route(const Request& request, const CancelToken& cancel) {
    std::string_view path = request.target, query;
    if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
        query = path.substr(mark + 1);
        path = path.substr(0, mark);
    }
    const auto below = [&](std::string_view prefix) -> std::optional<std::string_view> {
        if (!path.starts_with(prefix)) return std::nullopt;
        return path.substr(prefix.size());
    };
    if (path == "/api/pick") return pick(query, cancel);
    if (!query.empty()) return nothing_here();
    if (path == "/") return page();
    const ShownGeneration& first = *sets_.first();
    if (path == "/api/city") return json_response(first.json);
    if (path == "/api/path") return json_response(path_json(first.city.facts.trajectory));
    if (path == "/api/progress") return progress(first);
    if (path == "/api/beside")
        return json_response("{\"path\":" + path_json(first.city.facts.trajectory) +
                             ",\"scans\":" + scans_json(scans_) + ",\"distances\":" + distances() + "}");
    if (path == "/api/distances") return json_response(distances());
    if (path == "/api/generations") return json_response(generations_json(sets_.list()));
    if (const auto rest = below("/api/city/")) return of_generation(*rest, About::city);
    if (const auto rest = below("/api/progress/")) return of_generation(*rest, About::progress);
    if (const auto rest = below("/api/ground/")) return of_generation(*rest, About::ground);
    if (const auto rest = below("/api/diff/")) return diff(*rest, cancel);
    if (path == "/api/scans") return json_response(scans_json(scans_));
    if (const auto rest = below("/api/scan/")) return scan(*rest, false);
    if (const auto rest = below("/api/boxes/")) return scan(*rest, true);
    if (const auto rest = below("/app/")) return asset(*rest, request);
    if (const auto rest = below("/api/cube/")) return cube(*rest, cancel);
    return nothing_here();
}

/// The page names its parts by their hash, so that a newer program is never shown with older parts.
Response ViewApi::page() const {
    constexpr std::string_view kPlace = "HASH_OF_ASSETS";
    std::string html(asset_named("index.html")->content);
    for (std::size_t at = html.find(kPlace); at != std::string::npos; at = html.find(kPlace, at))
        html.replace(at, kPlace.size(), assets_hash_);
    Response response;
    response.headers = {{"Content-Type", std::string(type_of("index.html"))}, {"Cache-Control", "no-store"}};
    response.body = std::move(html);
    return response;
}

Response ViewApi::asset(std::string_view rest, const Request& request) const {
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos || rest.substr(0, slash) != assets_hash_) return nothing_here();
    const embedded::Text* file = asset_named(rest.substr(slash + 1));
    if (!file || file->name == "index.html") return nothing_here();
    const std::string etag = "\"" + assets_hash_ + "\"";
    Response response;
    response.headers = {{"Content-Type", std::string(type_of(file->name))},
                        {"Cache-Control", std::string(kForGood)},
                        {"ETag", etag}};
    if (request.only("If-None-Match") == etag)
        response.status = 304;
    else
        response.body = file->content;
    return response;
}

std::string ViewApi::distances() const {
    return distances_json(distances_, distance_levels_ ? &*distance_levels_ : nullptr, distance_key_);
}

Response ViewApi::progress(const ShownGeneration& of) const {
    const bool is_checked = check_ && &of == sets_.first().get();
    return json_response(progress_json(of.city, of.levels, is_checked ? &*check_ : nullptr));
}

Response ViewApi::of_generation(std::string_view text, About what) {
    const auto number = generation_number(text);
    if (!number) return nothing_here();
    const auto shown = sets_.generation(*number);
    if (!shown) return not_retained();
    switch (what) {
        case About::city:
            return json_response(shown->json);
        case About::progress:
            return progress(*shown);
        case About::ground:
            return ground_response(shown->city);
    }
    return nothing_here();
}

Response ViewApi::diff(std::string_view rest, const CancelToken& cancel) {
    const auto parts = split(rest, '/', 2);
    if (!parts || parts->size() != 2) return nothing_here();
    const auto before = generation_number((*parts)[0]), after = generation_number((*parts)[1]);
    if (!before || !after) return nothing_here();
    const auto shown = sets_.diff(*before, *after, cancel);
    return shown ? json_response(shown->json) : not_retained();
}

Response ViewApi::cube(std::string_view rest, const CancelToken& cancel) {
    const auto parts = split(rest, '/', 5);
    if (!parts || parts->size() != 5) return nothing_here();
    std::shared_ptr<splat::LevelPyramid> levels = sets_.levels((*parts)[0]);
    if (distance_levels_ && (*parts)[0] == distance_key_)
        levels = {std::shared_ptr<void>(), &*distance_levels_};  // lives as long as this
    if (!levels) return nothing_here();
    std::array<std::int32_t, 4> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = parse_whole<std::int32_t>((*parts)[i + 1]);
        if (!number) return nothing_here();
        numbers[i] = *number;
    }
    const splat::CubeId id{numbers[0], numbers[1], numbers[2], numbers[3]};
    if (!levels->may_exist(id)) return nothing_here();
    const splat::LevelCubePtr made = levels->cube(id, cancel);
    Response response = cube_response(made);
    // What lacks a tile may be whole tomorrow, when the tile was repaired.
    response.headers.push_back({"Cache-Control", std::string(made->incomplete ? "no-store" : kForGood)});
    return response;
}

/// Two numbers, sensor and scan, and nothing else: no part of an address reaches the disk.
Response ViewApi::scan(std::string_view rest, bool boxes) const {
    const auto parts = split(rest, '/', 2);
    if (!scans_ || !parts || parts->size() != 2) return nothing_here();
    const auto sensor = parse_whole<std::uint32_t>((*parts)[0]),
               number = parse_whole<std::uint32_t>((*parts)[1]);
    if (!sensor || !number || !scans_->exists(*sensor, *number)) return nothing_here();
    if (boxes) return json_response(boxes_json(scans_->boxes(*sensor, *number)));
    Response response = cube_response(cube_of_points(scans_->scan(*sensor, *number)));
    response.headers.push_back({"Cache-Control", "no-store"});  // simulate may write the directory again
    return response;
}

Response ViewApi::pick(std::string_view query, const CancelToken& cancel) {
    const auto parts = split(query, '&', 3);
    if (!parts || parts->size() < 2 || !(*parts)[0].starts_with("o=") || !(*parts)[1].starts_with("d="))
        return text_response(400, "a pick is o=X,Y,Z&d=X,Y,Z");
    const auto origin = vec_from((*parts)[0].substr(2)), direction = vec_from((*parts)[1].substr(2));
    if (!origin || !direction || !on_earth(*origin) || !on_earth(*direction) || length(*direction) < 1e-6)
        return text_response(400, "a pick is o=X,Y,Z&d=X,Y,Z with finite numbers and a direction");
    std::shared_ptr<ShownGeneration> in = sets_.first();
    if (parts->size() == 3) {
        const auto number =
            (*parts)[2].starts_with("g=") ? generation_number((*parts)[2].substr(2)) : std::nullopt;
        if (!number) return text_response(400, "a pick is o=X,Y,Z&d=X,Y,Z, or that with &g=GENERATION");
        in = sets_.generation(*number);
        if (!in) return not_retained();
    }
    return json_response(pick_json(in->city, in->picker.pick(*origin, *direction, cancel)));
}

}  // namespace citysplat::view
