#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "tiling/sector.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/splat_payload.hpp"
#include "view/server/http_server.hpp"
#include "view/server/view_api.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace citysplat::cli {

namespace {

struct ViewFlags {
    std::string city, trajectory, scans, cache = "256M", levels, levels_size = "2G";
    GenerationFlag generation;
    int port = 0;
    bool open = false, make_levels = false;
    TrajectoryFlags how;
};

/// Which inputs have points in which sectors of 64 m.
class SourceMap {
  public:
    SourceMap(tiling::Catalog& catalog, const std::vector<tiling::InputRow>& inputs) {
        std::map<std::int64_t, std::vector<std::size_t>> inputs_of;
        for (std::size_t i = 0; i < inputs.size(); ++i) inputs_of[inputs[i].source].push_back(i);
        for (const auto& [source, of] : inputs_of)
            for (const tiling::SegmentRow& segment : catalog.segments(source))
                sectors_[{segment.sector_x, segment.sector_y}].insert(of.begin(), of.end());
    }
    /// Those of the sectors that a tile touches.
    std::vector<std::size_t> below(const LatticeBox& core) const {
        std::set<std::size_t> found;
        const auto sector = [](std::int64_t steps) {
            return static_cast<std::int32_t>(steps >> tiling::kSectorShift);
        };
        for (std::int32_t x = sector(core.min_x); x <= sector(core.max_x - 1); ++x)
            for (std::int32_t y = sector(core.min_y); y <= sector(core.max_y - 1); ++y)
                if (const auto at = sectors_.find({x, y}); at != sectors_.end())
                    found.insert(at->second.begin(), at->second.end());
        return {found.begin(), found.end()};
    }

  private:
    std::map<tiling::Sector, std::set<std::size_t>> sectors_;
};

/// The first generation in which each product stood.
std::map<std::int64_t, std::int64_t> births(tiling::Catalog& catalog, std::int64_t shown) {
    std::map<std::int64_t, std::int64_t> born;
    std::set<std::int64_t> numbers;
    for (const tiling::GenerationRow& g : catalog.history())
        if (g.id <= shown) numbers.insert(g.id);
    for (const std::int64_t number : numbers)
        for (const tiling::ProductRow& product : catalog.tiles(number)) born.emplace(product.id, number);
    return born;
}

std::vector<view::GenerationFacts> history_of(tiling::Catalog& catalog) {
    std::vector<view::GenerationFacts> history;
    for (const tiling::GenerationRow& row : catalog.history())
        history.push_back({row.id, utc_text(row.created_s), row.note});
    std::sort(history.begin(), history.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    return history;
}

view::CityFacts facts_of(const std::string& city, const tiling::GenerationRow& g) {
    const tiling::CityPaths paths(city);
    const tiling::ObjectStore store(paths);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const std::vector<tiling::InputRow> inputs = catalog.inputs(g.id);
    const SourceMap sources(catalog, inputs);
    const auto born = births(catalog, g.id);
    const TileGrid grid(static_cast<double>(g.tile_size_m));

    view::CityFacts facts;
    facts.name = std::filesystem::path(city).lexically_normal().filename().string();
    facts.generation = g.id;
    facts.created = utc_text(g.created_s);
    facts.note = g.note;
    facts.digest = g.digest.hex();
    facts.points = g.points;
    facts.tile_size_m = g.tile_size_m;
    for (const tiling::InputRow& input : inputs) facts.inputs.push_back(input.path);
    facts.history = history_of(catalog);
    for (const tiling::ProductRow& product : catalog.tiles(g.id)) {
        if (!product.object) continue;
        view::TileFacts tile{product.points,
                             product.removed,
                             born.at(product.id),
                             "",
                             sources.below(grid.core(product.tile)),
                             product.object->hex()};
        if (!tiling::payload_fits(store, product))
            tile.problem = "its payload is missing or damaged; citysplat repair tells what can be done";
        facts.tiles.push_back(std::move(tile));
    }
    return facts;
}

/// The trajectory that was given, or the first of the inputs' that can be read. To walk along only: nothing
/// fails without it.
Trajectory path_of(const ViewFlags& f, const tiling::GenerationRow& g, Context& context) {
    if (!f.trajectory.empty()) return read_trajectory(f.trajectory, f.how.options());
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(f.city).catalog());
    std::set<std::string> tried;
    for (const tiling::InputRow& input : catalog.inputs(g.id)) {
        if (input.trajectory.empty() || !tried.insert(input.trajectory).second) continue;
        try {
            return read_trajectory(input.trajectory, f.how.options());
        } catch (const Error& e) {
            context.detail(std::string("no walk along ") + input.trajectory + ": " + e.what());
        }
    }
    return {};
}

/// All that the catalog retains; reads it anew each time, because builds publish and gc removes meanwhile.
class Generations final : public view::GenerationSource {
  public:
    explicit Generations(std::string city) : city_(std::move(city)) {}

    std::vector<view::GenerationFacts> list() const override {
        tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(city_).catalog());
        return history_of(catalog);
    }
    Opened open(std::int64_t number) const override {
        auto reader = std::make_unique<tiling::CityReader>(city_, number);
        view::CityFacts facts = facts_of(city_, reader->generation());
        return {std::move(reader), std::move(facts)};
    }

  private:
    std::string city_;
};

/// A private file that sends the browser to the address: on a command line every user of the machine could
/// read the token.
class DoorFile {
  public:
    explicit DoorFile(const std::string& url) {
        const char* runtime = std::getenv("XDG_RUNTIME_DIR");
        std::string pattern = ((runtime && *runtime) ? std::filesystem::path(runtime) : scratch_root()) /
                              "citysplat-XXXXXX.html";
        const int file = ::mkstemps(pattern.data(), 5);  // readable by its owner alone
        if (file < 0) throw IoError("cannot write " + pattern + " for the browser; open the address by hand");
        path_ = pattern;
        const std::string page =
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=" + url + "\">\n";
        const bool written = ::write(file, page.data(), page.size()) == static_cast<ssize_t>(page.size());
        ::close(file);
        if (!written) throw IoError("cannot write " + path_ + " for the browser; open the address by hand");
    }
    ~DoorFile() { ::unlink(path_.c_str()); }
    DoorFile(const DoorFile&) = delete;
    DoorFile& operator=(const DoorFile&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

void start_browser(const std::string& file, const Context& context) {
    std::string command = "xdg-open", argument = file;
    std::array<char*, 3> arguments{command.data(), argument.data(), nullptr};
    pid_t child = 0;
    if (::posix_spawnp(&child, "xdg-open", nullptr, nullptr, arguments.data(), environ) != 0) {
        context.warn("no browser can be started here (xdg-open is missing); open the address by hand");
        return;
    }
    // Its end is nobody's concern, but it must not stay a zombie.
    std::thread([child] { ::waitpid(child, nullptr, 0); }).detach();
}

/// Where levels of detail are kept for the next time: a directory of the user's, never the city.
std::optional<splat::LevelStore> level_store(const ViewFlags& f) {
    const std::uint64_t most_bytes = parse_bytes(f.levels_size, "--levels-size");
    std::filesystem::path directory = f.levels;
    const auto variable = [](const char* name) -> std::filesystem::path {
        const char* value = std::getenv(name);
        return value ? value : "";
    };
    // As the XDG base directory specification has it: a relative path there does not count.
    if (directory.empty() && variable("XDG_CACHE_HOME").is_absolute())
        directory = variable("XDG_CACHE_HOME") / "citysplat/levels";
    if (directory.empty() && variable("HOME").is_absolute())
        directory = variable("HOME") / ".cache/citysplat/levels";
    if (directory.empty() || most_bytes == 0) return std::nullopt;
    return std::optional<splat::LevelStore>(std::in_place, directory, most_bytes);
}

/// All levels above cells, so that the first picture reads no splat.
void make_levels(Context& context, const view::ShownCity& city, splat::PyramidOptions options) {
    if (!options.store) throw UsageError("--make-levels needs a directory for levels: --levels DIR");
    options.store_key = city.levels_key();
    splat::LevelPyramid levels(city.tiles, options);
    std::uint64_t discs = 0;
    for (const splat::CubeId& root : levels.roots())
        discs += levels.cube(root, context.cancel())->discs.size();
    const std::size_t missing = levels.missing().size();
    if (missing > 0)
        context.warn(std::to_string(missing) +
                     " tiles cannot be read; cubes that should have them are not kept");
    context.result({{"generation", city.facts.generation},
                    {"levels_key", options.store_key},
                    {"columns_read", levels.progress().done},
                    {"missing", missing},
                    {"kept_bytes", options.store->used_bytes()}},
                   "levels of generation " + std::to_string(city.facts.generation) + ": " +
                       format_count(discs) + " discs at the top, " +
                       format_bytes(options.store->used_bytes()) + " kept\n");
}

void run(Context& context, const ViewFlags& f) {
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    view::CityFacts facts = facts_of(f.city, city.generation());
    facts.trajectory = path_of(f, city.generation(), context);
    for (std::size_t i = 0; i < facts.tiles.size(); ++i)
        if (!facts.tiles[i].problem.empty())
            context.warn("tile " + city.tiles()[i].key.text() + ": " + facts.tiles[i].problem);

    std::optional<splat::LevelStore> store = level_store(f);
    view::ApiOptions options;
    options.levels.cache_bytes = parse_bytes(f.cache, "--cache");
    options.levels.store = store ? &*store : nullptr;
    if (f.make_levels) return make_levels(context, {city, facts}, options.levels);

    view::ServerOptions server_options;
    server_options.port = static_cast<std::uint16_t>(f.port);
    view::HttpServer server(server_options);
    options.port = server.port();
    options.token = view::Gate::new_token();
    const Generations generations(f.city);
    options.generations = &generations;
    std::optional<view::ScanFolder> scans;
    if (!f.scans.empty()) options.scans = &scans.emplace(f.scans);
    view::ViewApi api({city, facts}, options);
    server.start([&api](const view::Request& request, const CancelToken& cancel) {
        return api.answer(request, cancel);
    });

    const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/#t=" + options.token;
    context.announce({{"url", url}, {"port", server.port()}, {"generation", facts.generation}}, url + "\n");
    context.say("showing generation " + std::to_string(facts.generation) + " of " + f.city +
                "; Ctrl-C ends the viewer");
    std::optional<DoorFile> door;
    if (f.open) {
        door.emplace(url);
        start_browser(door->path(), context);
    }
    while (!context.cancel().requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.stop();
    context.say("ended after " + format_count(server.answered()) + " requests");
}

}  // namespace

void add_view(CLI::App& app, Context& context) {
    auto flags = std::make_shared<ViewFlags>();
    ViewFlags& f = *flags;
    CLI::App& verb = *app.add_subcommand("view", "look at a city in a browser, on this machine only");
    verb.fallthrough();
    verb.add_option("city", f.city, "directory of the city")->required();
    f.generation.add_to(verb);
    verb.add_option("--port", f.port, "port on 127.0.0.1 (default: one that is free)")
        ->check(whole_from(1024, 65535))
        ->type_name("N");
    verb.add_flag("--open,!--no-open", f.open, "start the browser; without it the address is printed only");
    verb.add_option("--trajectory", f.trajectory,
                    "to walk along (default: that of the first input, if it can be read)");
    f.how.add_to(verb);
    verb.add_option("--scans", f.scans,
                    "scans to play: a directory that simulate wrote, of one sensor or several")
        ->type_name("DIR");
    verb.add_option("--cache", f.cache, "memory for levels of detail")
        ->capture_default_str()
        ->type_name("SIZE");
    verb.add_option(
            "--levels", f.levels,
            "directory that keeps levels of detail for the next time (default: citysplat/levels in the "
            "cache directory of the user)")
        ->type_name("DIR");
    verb.add_option("--levels-size", f.levels_size, "most bytes in it; 0: nothing is kept")
        ->capture_default_str()
        ->type_name("SIZE");
    verb.add_flag("--make-levels", f.make_levels,
                  "make all levels, keep them and end: the next first picture reads no splat");
    verb.footer(
        "The address carries a token: who has it can look. Over ssh: citysplat view CITY --port 8765 there,\n"
        "ssh -L 8765:127.0.0.1:8765 HOST here, and open the printed address here.\n"
        "Example: citysplat view city --open");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
