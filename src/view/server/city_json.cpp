#include "view/server/city_json.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/printable.hpp"
#include "view/server/shown_set.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace citysplat::view {

namespace {

using nlohmann::json;

json vec_json(Vec3d v) { return {v.x, v.y, v.z}; }

std::string rgb_text(std::uint32_t rgb) {
    char text[8];
    std::snprintf(text, sizeof text, "#%06x", rgb & 0xffffffu);
    return text;
}

json class_json(int label, const ClassInfo& info) {
    return {{"label", label}, {"name", as_utf8(info.name)}, {"rgb", rgb_text(info.rgb)}};
}

json classes_json(const ClassMap& map) {
    json classes = json::array();
    for (const auto& [label, info] : map.classes()) classes.push_back(class_json(label, info));
    return classes;
}

/// Arrays, not objects: a city has ten thousand of them.
json tile_json(const TileEntry& entry, const TileFacts& facts) {
    return {entry.key.level, entry.key.ix,      entry.key.iy,   entry.splats, entry.payload_bytes,
            facts.points,    facts.removed,     facts.built_in, facts.inputs, as_utf8(facts.problem),
            entry.min.x,     entry.min.y,       entry.min.z,    entry.max.x,  entry.max.y,
            entry.max.z,     as_utf8(facts.why)};
}

/// Tiles that cannot be shown, found now, while the levels were made, or by the check.
json missing_json(const ShownCity& city, const splat::LevelPyramid& levels,
                  const TileCheck* check = nullptr) {
    std::map<std::size_t, std::string> missing = levels.missing();
    if (check) missing.merge(check->damaged());
    for (std::size_t i = 0; i < city.facts.tiles.size(); ++i)
        if (!city.facts.tiles[i].problem.empty()) missing.emplace(i, city.facts.tiles[i].problem);
    json list = json::array();
    for (const auto& [tile, reason] : missing)
        list.push_back(
            {{"tile", city.tiles.tiles()[tile].key.text()}, {"index", tile}, {"reason", as_utf8(reason)}});
    return list;
}

json roots_json(const splat::LevelPyramid& levels) {
    json roots = json::array();
    for (const splat::CubeId& id : levels.roots()) roots.push_back({id.level, id.x, id.y, id.z});
    return roots;
}

json history_json(std::span<const GenerationFacts> generations) {
    json history = json::array();
    for (const GenerationFacts& g : generations)
        history.push_back({{"generation", g.number}, {"created", g.created}, {"note", as_utf8(g.note)}});
    return history;
}

json place_json(const ShownCity& city, const Picked::Place& place) {
    const Splat& s = place.splat;
    const auto known = [](std::uint8_t byte) { return byte == kUnknownByte ? json() : json(byte); };
    json out{
        {"tile", city.tiles.tiles()[place.tile].key.text()},
        {"tile_index", place.tile},
        {"index", place.index},
        {"centre", vec_json(place.centre)},
        {"radius_m", static_cast<double>(s.radius) * kLatticeStep_m},
        {"points", s.point_count},
        {"group", static_cast<int>(s.group)},
        {"acquired_range_m", known(s.range)},
        {"acquired_incidence_deg", s.incidence == kUnknownByte ? json() : json(s.incidence * 90.0 / 254)}};
    if (place.tile < city.facts.tiles.size()) {
        const TileFacts& facts = city.facts.tiles[place.tile];
        out["built_in"] = facts.built_in;
        out["inputs"] = json::array();
        for (const std::size_t input : facts.inputs)
            out["inputs"].push_back(as_utf8(city.facts.inputs[input]));
    }
    return out;
}

/// Inputs with points within the radius of the splat. null when the archives cannot tell.
json provenance_json(const ShownCity& city, const Picked::Place& place) {
    json list = json::array();
    try {
        const double radius_m = static_cast<double>(place.splat.radius) * kLatticeStep_m;
        for (const Provenance::InputPoints& near : city.provenance->around(place.centre, radius_m))
            list.push_back({{"input", as_utf8(city.facts.inputs.at(near.input))}, {"points", near.points}});
    } catch (const Error&) {
        return json();
    }
    return list;
}

}  // namespace

std::string ShownCity::levels_key() const {
    return Hasher().text("levels").number(splat::kLevelsVersion).text(facts.digest).finish().hex();
}

HeightRange height_range(const TileSource& city) {
    std::vector<double> low, high;
    for (const TileEntry& tile : city.tiles()) {
        low.push_back(tile.min.z);
        high.push_back(tile.max.z);
    }
    if (low.empty()) return {};
    std::sort(low.begin(), low.end());
    std::sort(high.begin(), high.end());
    const auto at = [](const std::vector<double>& of, double share) {
        return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1))];
    };
    return {at(low, 0.02), at(high, 0.9)};
}

std::string city_json(const ShownCity& city, const splat::LevelPyramid& levels) {
    const CityFacts& f = city.facts;
    const HeightRange heights = height_range(city.tiles);
    json tiles = json::array(), inputs = json::array();
    std::uint64_t splats = 0;
    for (std::size_t i = 0; i < city.tiles.tiles().size(); ++i) {
        const TileEntry& entry = city.tiles.tiles()[i];
        splats += entry.splats;
        tiles.push_back(tile_json(entry, i < f.tiles.size() ? f.tiles[i] : TileFacts{}));
    }
    for (const std::string& input : f.inputs) inputs.push_back(as_utf8(input));
    return json{{"name", as_utf8(f.name)},
                {"generation", f.generation},
                {"created", f.created},
                {"note", as_utf8(f.note)},
                {"digest", f.digest},
                {"points", f.points},
                {"splats", splats},
                {"tile_size_m", f.tile_size_m},
                {"crs", as_utf8(city.tiles.crs())},
                {"levels_key", city.levels_key()},
                {"roots", roots_json(levels)},
                {"heights_m", {heights.low_m, heights.high_m}},
                {"classes", classes_json(city.tiles.classes())},
                {"unlisted", class_json(-1, city.tiles.classes().unlisted())},
                {"tiles", tiles},
                {"missing", missing_json(city, levels)},
                {"history", history_json(f.history)},
                {"inputs", inputs}}
        .dump();
}

std::string progress_json(const ShownCity& city, const splat::LevelPyramid& levels, const TileCheck* check) {
    const auto progress = levels.progress();
    return json{{"done", progress.done},
                {"total", progress.total},
                {"checked", check ? json(check->checked()) : json()},
                {"missing", missing_json(city, levels, check)}}
        .dump();
}

std::string distances_json(const DistanceCloud* cloud, const splat::LevelPyramid* levels,
                           const std::string& key) {
    if (!cloud) return json{{"points", 0}}.dump();
    return json{{"name", as_utf8(cloud->name())},
                {"points", cloud->points()},
                {"median_m", cloud->quantile_m(0.5)},
                {"p95_m", cloud->quantile_m(0.95)},
                {"max_m", cloud->quantile_m(1)},
                {"unit_m", DistanceCloud::kUnit_m},
                {"levels_key", key},
                {"roots", roots_json(*levels)}}
        .dump();
}

std::string path_json(const Trajectory& trajectory) {
    constexpr std::size_t kMostPoses = 4000;
    const auto poses = trajectory.poses();
    const std::size_t step = poses.size() / kMostPoses + 1;
    json out = json::array();
    for (std::size_t i = 0; i < poses.size(); i += step) {
        const Vec3d at = poses[i].world_from_body.translation;
        const Vec3d forward = rotate(poses[i].world_from_body.rotation, {1, 0, 0});
        out.push_back({poses[i].time_s, at.x, at.y, at.z, std::atan2(forward.y, forward.x)});
    }
    return json{{"poses", out}}.dump();
}

std::string scans_json(const ScanFolder* scans) {
    json sensors = json::array();
    if (scans)
        for (const PlayedSensor& s : scans->sensors())
            sensors.push_back({{"name", as_utf8(s.name)},
                               {"frame", s.sensor_frame ? "sensor" : "world"},
                               {"boxes", s.has_boxes},
                               {"times", s.times_s},
                               {"poses", s.poses}});
    return json{{"folder", scans ? as_utf8(scans->name()) : ""}, {"sensors", sensors}}.dump();
}

std::string boxes_json(std::span<const Track> boxes) {
    json list = json::array();
    for (const Track& box : boxes) {
        const StampedPose& stamped = box.path.poses().front();
        const Pose& pose = stamped.world_from_body;
        list.push_back({{"name", as_utf8(box.name)},
                        {"class", as_utf8(box.class_name)},
                        {"time", stamped.time_s},
                        {"bottom", vec_json(pose.translation)},
                        {"forward", vec_json(rotate(pose.rotation, {1, 0, 0}))},
                        {"left", vec_json(rotate(pose.rotation, {0, 1, 0}))},
                        {"up", vec_json(rotate(pose.rotation, {0, 0, 1}))},
                        {"size", {box.size.length_m, box.size.width_m, box.size.height_m}}});
    }
    return json{{"boxes", list}}.dump();
}

std::string generations_json(std::span<const GenerationFacts> generations) {
    return json{{"generations", history_json(generations)}}.dump();
}

std::string diff_json(const ShownDiff& shown, std::span<const TileChange> changes) {
    constexpr std::array<const char*, 3> kKinds{"changed", "added", "removed"};
    json tiles = json::array();
    std::uint64_t only_before = 0, only_after = 0;
    for (const TileChange& c : changes) {
        only_before += c.only_before;
        only_after += c.only_after;
        tiles.push_back({{"tile", c.key.text()},
                         {"kind", kKinds[static_cast<std::size_t>(c.kind)]},
                         {"only_before", c.only_before},
                         {"only_after", c.only_after},
                         {"problem", as_utf8(c.problem)},
                         {"box", {c.min.x, c.min.y, c.min.z, c.max.x, c.max.y, c.max.z}}});
    }
    const auto side = [](const ShownGeneration& of, const std::string& key,
                         const splat::LevelPyramid& levels) {
        return json{
            {"generation", of.city.facts.generation}, {"levels_key", key}, {"roots", roots_json(levels)}};
    };
    return json{{"before", side(*shown.before, shown.key_before, shown.levels_before)},
                {"after", side(*shown.after, shown.key_after, shown.levels_after)},
                {"only_before", only_before},
                {"only_after", only_after},
                {"tiles", tiles}}
        .dump();
}

std::string pick_json(const ShownCity& city, const Picked& picked) {
    json missing = json::array();
    for (const std::uint32_t tile : picked.missing) missing.push_back(city.tiles.tiles()[tile].key.text());
    json out{{"hit", picked.hit.exists()}, {"generation", city.facts.generation}, {"missing", missing}};
    if (!picked.hit.exists()) return out.dump();
    const trace::Hit& hit = picked.hit;
    char id[17];
    std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(hit.splat_id));
    out["splat_id"] = id;
    out["range_m"] = hit.range_m;
    out["position"] = vec_json(picked.position);
    out["normal"] = vec_json(vec_cast<double>(unpack_normal(hit.normal)));
    out["label"] = hit.label;
    out["class"] = as_utf8(city.tiles.classes().at(hit.label).name);
    out["intensity"] = hit.intensity;
    if (picked.place) {
        out["splat"] = place_json(city, *picked.place);
        if (city.provenance) out["splat"]["points_from"] = provenance_json(city, *picked.place);
    }
    return out.dump();
}

}  // namespace citysplat::view
