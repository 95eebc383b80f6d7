#include "citysplat/night/nightly.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/product_flag.hpp"
#include "citysplat/night/child.hpp"
#include "citysplat/night/night_config.hpp"
#include "citysplat/night/night_report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "core/text.hpp"
#include "io/input/pattern.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace citysplat::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::int64_t now_s() { return static_cast<std::int64_t>(std::time(nullptr)); }

bool is_pattern(const std::string& word) { return word.find_first_of("*?[") != std::string::npos; }

/// Whether a list of inputs can hold the name: lines end, and blanks around them say nothing.
bool is_line(const std::string& name) {
    return name.find_first_of("\r\n") == std::string::npos && trimmed(name) == name;
}

std::string bytes_of(const fs::path& path) {
    const auto bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const fs::path& path, const std::string& text) {
    OutputFile file(path);
    file.writer().text(text);
    file.commit(true);
}

class Night {
  public:
    Night(Context& context, NightConfig config) : context_(context), config_(std::move(config)) {
        facts_.city = config_.city;
        facts_.begun_s = now_s();
        facts_.steps.reserve(kMostSteps);  // references to steps stay valid
    }

    void run() {
        create_directories_durably(config_.report_directory);
        // Of two nights at once the second one ends here, and leaves the report to the first.
        const OutputFile turn(config_.report_directory / "running");
        read_last_report();
        build();
        look_at_city();
        compare();
        facts_.ended_s = now_s();
        const std::optional<std::string> unwritten = write_report();
        forget();
        write_metrics(unwritten.has_value());
        after();
        finish(unwritten);
    }

  private:
    static constexpr std::size_t kMostSteps = 16;

    fs::path report(const char* name) const { return config_.report_directory / name; }

    StepResult& step(std::vector<std::string> words) {
        words.insert(words.end(), config_.common.begin(), config_.common.end());
        context_.say(words[0] + " …");
        facts_.steps.push_back(run_verb(words, context_.cancel()));
        StepResult& s = facts_.steps.back();
        context_.detail(shell_line(s.command) + ": exit code " + std::to_string(s.code));
        return s;
    }

    /// The same when somebody else may hold the city for a while.
    StepResult& patient_step(const std::vector<std::string>& words) {
        const Stopwatch watch;
        for (;;) {
            StepResult& s = step(words);
            if (s.code != static_cast<int>(ErrorKind::busy) || watch.seconds() >= config_.wait_lock_s)
                return s;
            facts_.steps.pop_back();
            for (int i = 0; i < 50 && !context_.cancel().requested(); ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            context_.cancel().check();
        }
    }

    void fail(const StepResult& s) {
        facts_.code = s.code > 128 ? static_cast<int>(ErrorKind::interrupted) : s.code;
        facts_.status = facts_.code == static_cast<int>(ErrorKind::held_back)     ? "held_back"
                        : facts_.code == static_cast<int>(ErrorKind::interrupted) ? "interrupted"
                                                                                  : "failed";
        facts_.message = s.error();
    }

    /// The inputs of a drive as words of `plan`. What patterns match goes into a file, there may be many.
    std::vector<std::string> inputs_of(const NightConfig::Drive& drive, std::size_t number) const {
        std::vector<std::string> words;
        std::string list;
        for (const std::string& input : drive.inputs) {
            if (!is_pattern(input)) {
                if (input[0] == '@' || fs::exists(input)) words.push_back(input);
                continue;
            }
            // Nothing is no error: what is gone is for the plan to judge.
            for (const fs::path& path : io::matches_of(input)) {
                const std::string name = path.string();
                if (is_line(name))
                    list += name + "\n";
                else
                    words.push_back(name);
            }
        }
        if (list.empty()) return words;
        const fs::path file = config_.report_directory / ("inputs-" + std::to_string(number) + ".list");
        write_text(file, list);
        words.push_back("@" + fs::absolute(file).string());
        return words;
    }

    std::vector<std::string> plan_words() const {
        std::vector<std::string> words{"plan", config_.city};
        words.insert(words.end(), config_.plan.begin(), config_.plan.end());
        for (std::size_t i = 0; i < config_.drives.size(); ++i) {
            const auto& drive = config_.drives[i];
            const auto inputs = inputs_of(drive, i);
            if (inputs.empty()) continue;
            words.insert(words.end(), {"--drive", drive.trajectory.empty() ? "-" : drive.trajectory});
            words.insert(words.end(), inputs.begin(), inputs.end());
        }
        return words;
    }

    /// plan, work, publish.
    void build() {
        const StepResult& planned = patient_step(plan_words());
        if (!planned.ok()) return fail(planned);
        facts_.status = "unchanged";
        if (!planned.result.is_object() || planned.result["plan"].is_null()) return;
        std::vector<std::string> work{"work", config_.city};
        work.insert(work.end(), config_.work.begin(), config_.work.end());
        const StepResult& worked = step(work);
        const bool tiles_may_fail =
            !config_.publish.empty() && std::find(config_.publish.begin(), config_.publish.end(),
                                                  "--keep-old-for-failed") != config_.publish.end();
        if (!worked.ok() && !(worked.code == static_cast<int>(ErrorKind::bad_data) && tiles_may_fail))
            return fail(worked);
        std::vector<std::string> publish{"publish", config_.city};
        publish.insert(publish.end(), config_.publish.begin(), config_.publish.end());
        const StepResult& published = patient_step(publish);
        if (!published.ok()) return fail(published);
        if (published.result["published"] == true) facts_.status = "published";
    }

    /// What the report before this one was about; the changes since then are told.
    void read_last_report() {
        if (!fs::is_regular_file(report("report.json"))) return;
        const json last = json::parse(read_text_file(report("report.json")), nullptr, false);
        if (!last.is_object()) return;
        if (last.contains("generation") && last["generation"].is_number_integer())
            reported_ = last["generation"].get<std::int64_t>();
        if (last.contains("last_success_s") && last["last_success_s"].is_number_integer())
            last_success_s_ = last["last_success_s"].get<std::int64_t>();
    }

    void look_at_city() {
        if (!tiling::CityPaths(config_.city).is_city()) return;
        StepResult status = run_verb({"status", config_.city, "-q"}, context_.cancel());
        if (status.ok()) facts_.generation = std::move(status.result);
    }

    void compare() {
        if (!facts_.generation.is_object()) return;
        const std::int64_t latest = facts_.generation["generation"].get<std::int64_t>();
        tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(config_.city).catalog());
        std::int64_t from = 0;
        for (const auto& row : catalog.history())
            if (row.id < latest && (reported_ == 0 || row.id <= reported_)) from = row.id;
        if (from != 0 && latest != reported_ && facts_.succeeded()) {
            std::vector<std::string> words{"diff", config_.city, std::to_string(from),
                                           std::to_string(latest)};
            if (have_splats(from, latest))
                words.insert(words.end(),
                             {"--splats", "--layers", fs::absolute(report("changes.gpkg")).string()});
            words.insert(words.end(), config_.diff.begin(), config_.diff.end());
            const StepResult& s = step(words);
            if (s.ok())
                facts_.diff = s.result;
            else
                facts_.untold = s.error();
            if (facts_.status == "unchanged") facts_.status = "published";  // by a night that was stopped
        }
        draw_map(catalog, latest);
        take_pictures(from, latest);
    }

    bool have_splats(std::int64_t from, std::int64_t to) const {
        const ProductFlag any;
        return any.kind(config_.city, from) == ProductKind::splats &&
               any.kind(config_.city, to) == ProductKind::splats;
    }

    void draw_map(tiling::Catalog& catalog, std::int64_t latest) {
        std::map<std::string, MapTile::State> states;
        if (facts_.diff.is_object())
            for (const json& t : facts_.diff["tile_changes"])
                states[t["tile"].get<std::string>()] = t["change"] == "added"     ? MapTile::State::added
                                                       : t["change"] == "removed" ? MapTile::State::removed
                                                                                  : MapTile::State::changed;
        const auto row = catalog.generation(latest);
        if (!row) return;  // somebody published another one and forgot this one meanwhile
        const auto add = [&](const TileKey& key, MapTile::State state) {
            const double size = static_cast<double>(row->tile_size_m) / static_cast<double>(1 << key.level);
            facts_.map.push_back({key.ix * size, key.iy * size, size, state});
        };
        for (const auto& tile : catalog.tiles(latest)) {
            const auto found = states.find(tile.tile.text());
            add(tile.tile, found == states.end() ? MapTile::State::same : found->second);
        }
        for (const auto& [text, state] : states) {
            TileKey key;
            if (state == MapTile::State::removed &&
                std::sscanf(text.c_str(), "%d/%d/%d", &key.level, &key.ix, &key.iy) == 3)
                add(key, state);
        }
    }

    /// Of the largest changed surfaces, from 12 m beside and 6 m above.
    void take_pictures(std::int64_t from, std::int64_t to) {
        if (config_.pictures == 0 || !facts_.diff.is_object() || !facts_.diff.contains("surfaces")) return;
        const json& clusters = facts_.diff["surfaces"]["clusters"];
        for (std::size_t i = 0; i < std::min<std::size_t>(config_.pictures, clusters.size()); ++i) {
            const json& c = clusters[i];
            const auto at = [&c](std::size_t a) { return c["centre_m"][a].get<double>(); };
            PicturePair pair;
            pair.title = c["kind"].get<std::string>() + ", " + c["class"].get<std::string>();
            for (const auto& [generation, bytes] :
                 {std::pair(from, &pair.before), std::pair(to, &pair.after)}) {
                const fs::path file = report("picture.png");
                const auto numbers = [](double x, double y, double z) {
                    return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
                };
                const StepResult made = run_verb(
                    {"render", config_.city, "--generation", std::to_string(generation), "--eye",
                     numbers(at(0) - 8, at(1) - 9, at(2) + 6), "--look-at", numbers(at(0), at(1), at(2)),
                     "--size", "480x320", "--out", file.string(), "-q"},
                    context_.cancel());
                if (made.ok()) *bytes = bytes_of(file);
                std::error_code ignored;
                fs::remove(file, ignored);
            }
            facts_.pictures.push_back(std::move(pair));
        }
    }

    /// Says why when it is not there, or not whole. report.json comes last: the next night begins from it.
    std::optional<std::string> write_report() {
        if (facts_.succeeded() && facts_.code == 0) last_success_s_ = facts_.ended_s;
        try {
            write_text(report("report.html"), html_of(facts_));
            write_text(report("summary.txt"), summary_of(facts_));
            if (!config_.junit.empty()) write_text(config_.junit, junit_of(facts_));
            json all = json_of(facts_);
            all["last_success_s"] = last_success_s_;
            // A night that failed has not told what changed since the last good one.
            if (!facts_.succeeded() || !facts_.untold.empty())
                all["generation"] = reported_ > 0 ? json(reported_) : json();
            write_text(report("report.json"), all.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
        } catch (const Error& e) {
            return std::string(e.what());
        } catch (const fs::filesystem_error& e) {
            return std::string(e.what());
        }
        if (!facts_.untold.empty()) return facts_.untold;
        return std::nullopt;
    }

    void forget() {
        if (!config_.gc_wanted || facts_.status != "published") return;
        std::vector<std::string> words{"gc", config_.city};
        words.insert(words.end(), config_.gc.begin(), config_.gc.end());
        const StepResult& s = step(words);
        if (!s.ok()) context_.warn("gc: " + s.error());
    }

    void write_metrics(bool report_failed) {
        if (config_.prometheus.empty()) return;
        NightFacts facts = facts_;
        if (report_failed && facts.code == 0) facts.code = static_cast<int>(ErrorKind::io);
        try {
            write_text(config_.prometheus, prometheus_of(facts, last_success_s_));
        } catch (const Error& e) {
            context_.warn(e.what());
            metrics_failed_ = true;
        }
    }

    void after() {
        if (config_.after.empty()) return;
        std::vector<std::string> words = config_.after;
        for (std::string& word : words) {
            const std::pair<const char*, std::string> values[]{
                {"{summary}", fs::absolute(report("summary.txt")).string()},
                {"{report}", fs::absolute(report("report.html")).string()},
                {"{status}", facts_.status},
                {"{code}", std::to_string(facts_.code)},
                {"{city}", config_.city}};
            for (const auto& [name, value] : values)
                if (const std::size_t found = word.find(name); found != std::string::npos)
                    word.replace(found, std::string(name).size(), value);
        }
        if (const int code = run_command(words, context_.cancel()); code != 0)
            context_.warn("the command after the night, " + shell_line(words) + ", ended with exit code " +
                          std::to_string(code));
    }

    void finish(const std::optional<std::string>& unwritten) {
        json result = json_of(facts_);
        result["report"] = report("report.html").string();
        context_.result(result, summary_of(facts_));
        if (facts_.code != 0) throw Error(static_cast<ErrorKind>(facts_.code), facts_.message);
        if (unwritten)
            throw IoError("the city is up to date, but the report could not be written: " + *unwritten);
        if (metrics_failed_) throw IoError("the city is up to date, but the metrics could not be written");
    }

    Context& context_;
    const NightConfig config_;
    NightFacts facts_;
    std::int64_t reported_ = 0;  ///< the generation of the last report; 0: there is none
    std::int64_t last_success_s_ = 0;
    bool metrics_failed_ = false;
};

}  // namespace

void add_nightly(CLI::App& app, Context& context) {
    auto file = std::make_shared<std::string>();
    CLI::App& verb =
        *app.add_subcommand("nightly", "bring a city up to date as its file says, look at it, and report");
    verb.fallthrough();
    verb.add_option("file", *file, "TOML file of the city (docs/nightly.md)")
        ->required()
        ->type_name("CITY.toml");
    verb.footer(
        "Example: citysplat nightly paris.toml\n"
        "Runs plan, work, publish, diff and gc, each of which can be run alone (-v shows the commands), and\n"
        "writes report.html, summary.txt and report.json. Exit code 76: held back by a gate; 78: inputs "
        "have\n"
        "vanished, nothing was changed; 74: the city is up to date, the report could not be written.");
    verb.callback([file, &context] { Night(context, NightConfig::load(*file)).run(); });
}

}  // namespace citysplat::cli
