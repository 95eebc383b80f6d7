#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "citysplat/viewing/catalog_facts.hpp"
#include "citysplat/viewing/kept_levels.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "tiling/store/city_reader.hpp"
#include "view/server/http_server.hpp"
#include "view/server/view_api.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
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
    std::string city, trajectory, scans, distances, cache = "256M";
    LevelFlags levels;
    GenerationFlag generation;
    int port = 0;
    bool open = false, make_levels = false, check = true;
    TrajectoryFlags how;
};

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

/// Ends the server before what it answers from goes, also when an error ends the verb.
struct StopAtEnd {
    view::HttpServer& server;
    ~StopAtEnd() { server.stop(); }
};

void run(Context& context, const ViewFlags& f) {
    view::return_memory_early();
    const tiling::CityReader city(f.city, f.generation.number(f.city));
    view::CityFacts facts = facts_of(f.city, city.generation());
    facts.trajectory = path_of(f, city.generation(), context);
    for (std::size_t i = 0; i < facts.tiles.size(); ++i)
        if (!facts.tiles[i].problem.empty())
            context.warn("tile " + city.tiles()[i].key.text() + ": " + facts.tiles[i].problem);

    std::optional<splat::LevelStore> store = f.levels.store();
    view::ApiOptions options;
    options.levels.cache_bytes = parse_bytes(f.cache, "--cache");
    options.levels.store = store ? &*store : nullptr;
    if (f.make_levels) {
        if (!store) throw UsageError("--make-levels needs a directory for levels: --levels DIR");
        const MadeLevels made = make_levels({city, facts}, options.levels, context);
        context.result({{"generation", facts.generation},
                        {"levels_key", made.key},
                        {"columns_read", made.columns_read},
                        {"missing", made.missing},
                        {"kept_bytes", made.kept_bytes}},
                       "levels of generation " + std::to_string(facts.generation) + ": " +
                           format_count(made.top_discs) + " discs at the top, " +
                           format_bytes(made.kept_bytes) + " kept\n");
        return;
    }

    view::ServerOptions server_options;
    server_options.port = static_cast<std::uint16_t>(f.port);
    server_options.is_slow = &view::ViewApi::is_slow;
    view::HttpServer server(server_options);
    options.port = server.port();
    options.token = view::Gate::new_token();
    const Generations generations(f.city);
    options.generations = &generations;
    std::optional<view::ScanFolder> scans;
    if (!f.scans.empty()) options.scans = &scans.emplace(f.scans);
    std::optional<view::DistanceCloud> distances;
    if (!f.distances.empty()) options.distances = &distances.emplace(f.distances);
    options.check_tiles = f.check;
    const auto provenance = provenance_of(f.city, facts.generation);
    view::ViewApi api({city, facts, provenance.get()}, options);
    const StopAtEnd stop_at_end{server};
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
    verb.add_option("--distances", f.distances,
                    "points with their distances to a reference, as compare --distances wrote them")
        ->type_name("FILE");
    verb.add_option("--cache", f.cache, "memory for levels of detail")
        ->capture_default_str()
        ->type_name("SIZE");
    f.levels.add_to(verb);
    verb.add_flag("--make-levels", f.make_levels,
                  "make all levels, keep them and end: the next first picture reads no splat");
    verb.add_flag("!--no-check", f.check,
                  "do not read every tile once in the background to find damage that nobody has come near");
    verb.footer(
        "The address carries a token: who has it can look. Over ssh: citysplat view CITY --port 8765 there,\n"
        "ssh -L 8765:127.0.0.1:8765 HOST here, and open the printed address here.\n"
        "Example: citysplat view city --open");
    verb.callback([flags, &context] { run(context, *flags); });
}

}  // namespace citysplat::cli
