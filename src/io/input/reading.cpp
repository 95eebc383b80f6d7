#include "io/input/reading.hpp"

#include "core/error.hpp"
#include "core/printable.hpp"
#include "io/input/adjusted_file.hpp"
#include "io/input/open_point_file.hpp"
#include "io/input/sweep_words.hpp"
#include "io/input/tracked_file.hpp"

#include <nlohmann/json.hpp>

#include <mutex>

namespace citysplat::io {

namespace {

using nlohmann::json;

Pose pose_from(const json& a) { return {{a.at(0), a.at(1), a.at(2)}, {a.at(3), a.at(4), a.at(5), a.at(6)}}; }

json to_json(const TrajectoryOptions& o) {
    const TrajectoryOptions defaults;
    json j = json::object();
    if (o.format != defaults.format) j["format"] = TrajectoryOptions::kFormats.of(o.format);
    if (o.angles != defaults.angles) j["angles"] = TrajectoryOptions::kAngles.of(o.angles);
    if (!o.columns.empty()) j["columns"] = o.columns;
    if (o.time_offset_s != 0) j["time_offset_s"] = o.time_offset_s;
    if (o.gps_week) j["gps_week"] = *o.gps_week;
    if (o.adjusted_gps_time) j["adjusted_gps_time"] = true;
    const Vec3d& p = o.position_offset_m;
    if (p.x != 0 || p.y != 0 || p.z != 0) j["position_offset_m"] = {p.x, p.y, p.z};
    if (o.epsg != 0) j["epsg"] = o.epsg;
    if (o.allow_gaps) j["allow_gaps"] = true;
    return j;
}

json parse(const std::string& reading) {
    if (reading.empty()) return json::object();
    json j = json::parse(reading, nullptr, false);
    if (!j.is_object())
        throw CorruptionError("the catalog says \"" + reading + "\" about an input; that is not JSON");
    return j;
}

/// Names of files are bytes; JSON holds text. A name that is not UTF-8 is kept byte by byte.
void put_path(json& j, const std::string& key, const std::string& path) {
    if (is_utf8(path)) {
        j[key] = path;
        return;
    }
    json bytes = json::array();
    for (const char c : path) bytes.push_back(static_cast<unsigned char>(c));
    j[key + "_bytes"] = std::move(bytes);
}

std::filesystem::path get_path(const json& j, const std::string& key) {
    if (!j.contains(key + "_bytes")) return j.value(key, "");
    std::string path;
    for (const json& byte : j[key + "_bytes"]) path += static_cast<char>(byte.get<unsigned char>());
    return path;
}

/// The files that a reading speaks of, as words: path under `key`, content under key_hash.
void put_file(json& j, const std::string& key, const std::filesystem::path& path, const Hash128& hash) {
    put_path(j, key, path.string());
    j[key + "_hash"] = hash.hex();
}

void refresh_file(json& j, const std::string& key) {
    const std::filesystem::path path = get_path(j, key);
    if (!path.empty() && std::filesystem::exists(path))
        j[key + "_hash"] = hash_file(path, CancelToken()).hex();
}

void put_adjustment(json& j, const Adjustment& adjustment) {
    json words = json::object();
    put_file(words, "file", adjustment.adjusted_file, adjustment.adjusted_hash);
    if (!adjustment.given_file.empty())
        put_file(words, "given", adjustment.given_file, adjustment.given_hash);
    j["adjusted"] = std::move(words);
}

void check_unchanged(const json& words, const char* key, const std::filesystem::path& file,
                     const Hash128& hash) {
    if (words.value(key, hash.hex()) != hash.hex())
        throw BusyError(file.string() + " changed while it was read; run the same command again");
}

std::shared_ptr<const Adjustment> adjustment_from(const json& words, const TrajectoryOptions& how) {
    auto adjustment = read_adjustment(get_path(words, "given"), how, get_path(words, "file"));
    check_unchanged(words, "file_hash", adjustment->adjusted_file, adjustment->adjusted_hash);
    check_unchanged(words, "given_hash", adjustment->given_file, adjustment->given_hash);
    return adjustment;
}

std::shared_ptr<const TrackedBoxes> tracked_from(const json& words) {
    auto tracked = read_tracked_boxes(get_path(words, "file"));
    check_unchanged(words, "file_hash", tracked->file, tracked->hash);
    return tracked;
}

std::string dumped(const json& j) {
    try {
        return j.dump();
    } catch (const json::type_error&) {
        throw UsageError("--crs, --to-crs, --columns and --trajectory-columns must be UTF-8 text");
    }
}

/// One of the words; the first where nothing is said. Cities of earlier versions have its number instead.
template <class Enum, std::size_t kCount>
Enum choice(const json& j, const char* key, const Words<Enum, kCount>& words) {
    if (!j.contains(key)) return Enum{};
    const json& said = j[key];
    if (said.is_number_unsigned() && said.get<std::uint64_t>() < kCount)
        return static_cast<Enum>(said.get<int>());
    const auto known = said.is_string() ? words.value(said.get<std::string>()) : std::nullopt;
    if (!known)
        throw CorruptionError("the catalog says " + said.dump() + " about the " + key + " of an input");
    return *known;
}

ReadOptions to_read_options(const json& j) {
    ReadOptions o;
    o.units = choice(j, "units", ReadOptions::kUnits);
    o.reader = choice(j, "reader", ReadOptions::kReaders);
    o.salvage = j.value("salvage", false);
    o.ignore_bounds = j.value("ignore_bounds", false);
    o.crs = j.value("crs", "");
    o.to_crs = j.value("to_crs", "");
    if (j.contains("intensity_range"))
        o.intensity_range = {j["intensity_range"].at(0), j["intensity_range"].at(1)};
    o.text_columns = j.value("columns", "");
    o.labels = get_path(j, "labels");
    if (j.contains("sweep")) o.sweep = sweep_from(j["sweep"]);
    if (j.contains("mask")) o.mask = mask_from(j["mask"]);
    if (j.contains("world_from_sensor")) o.world_from_sensor = pose_from(j["world_from_sensor"]);
    if (j.contains("scan_time_s")) o.scan_time_s = j["scan_time_s"].get<double>();
    return o;
}

TrajectoryOptions to_trajectory_options(const json& reading) {
    const json j = reading.value("trajectory", json::object());
    TrajectoryOptions o;
    o.format = choice(j, "format", TrajectoryOptions::kFormats);
    o.angles = choice(j, "angles", TrajectoryOptions::kAngles);
    if (j.contains("columns")) j["columns"].get_to(o.columns);
    o.time_offset_s = j.value("time_offset_s", 0.0);
    if (j.contains("gps_week")) o.gps_week = j["gps_week"].get<int>();
    o.adjusted_gps_time = j.value("adjusted_gps_time", false);
    if (j.contains("position_offset_m")) {
        const json& p = j["position_offset_m"];
        o.position_offset_m = {p.at(0), p.at(1), p.at(2)};
    }
    o.epsg = j.value("epsg", 0);
    o.allow_gaps = j.value("allow_gaps", false);
    return o;
}

/// What `convert` makes of a reading. A catalog with other words than ours is damaged.
template <class Convert>
auto understood(const std::string& reading, const Convert& convert) {
    try {
        return convert(parse(reading));
    } catch (const json::exception&) {
        throw CorruptionError("the catalog says \"" + reading + "\" about an input, which makes no sense");
    }
}

}  // namespace

std::string reading_of(const InputSource& source, const ReadOptions& options,
                       const TrajectoryOptions& trajectory) {
    const ReadOptions defaults;
    json j = json::object();
    if (options.units != defaults.units) j["units"] = ReadOptions::kUnits.of(options.units);
    if (options.reader != defaults.reader) j["reader"] = ReadOptions::kReaders.of(options.reader);
    if (options.salvage) j["salvage"] = true;
    if (options.ignore_bounds) j["ignore_bounds"] = true;
    if (!options.crs.empty()) j["crs"] = options.crs;
    if (!options.to_crs.empty()) j["to_crs"] = options.to_crs;
    if (options.intensity_range)
        j["intensity_range"] = {options.intensity_range->first, options.intensity_range->second};
    if (!options.text_columns.empty()) j["columns"] = options.text_columns;
    if (!source.labels.empty()) {
        put_file(j, "labels", std::filesystem::absolute(source.labels),
                 hash_file(source.labels, CancelToken()));
    }
    const ReadOptions own = source.read_options(options);
    if (own.sweep) j["sweep"] = to_words(*own.sweep);
    if (json mask = to_words(own.mask); !mask.empty()) j["mask"] = std::move(mask);
    if (options.adjustment) put_adjustment(j, *options.adjustment);
    if (json t = to_json(trajectory); !t.empty()) j["trajectory"] = std::move(t);
    return j.empty() ? std::string() : dumped(j);
}

std::string with_tracks(const std::string& reading, const TrackedBoxes& tracked) {
    return understood(reading, [&](json j) {
        j["tracks"] = json::object();
        put_file(j["tracks"], "file", tracked.file, tracked.hash);
        return dumped(j);
    });
}

std::string refreshed_reading(const std::string& reading) {
    return understood(reading, [&](json j) {
        if (get_path(j, "labels").empty() && !j.contains("adjusted") && !j.contains("tracks")) return reading;
        refresh_file(j, "labels");
        if (j.contains("adjusted"))
            for (const char* key : {"file", "given"}) refresh_file(j["adjusted"], key);
        if (j.contains("tracks")) refresh_file(j["tracks"], "file");
        return dumped(j);
    });
}

ReadOptions read_options_from(const std::string& reading) {
    return understood(reading, [](const json& j) {
        ReadOptions options = to_read_options(j);
        if (j.contains("adjusted"))
            options.adjustment = adjustment_from(j["adjusted"], to_trajectory_options(j));
        return options;
    });
}

TrajectoryOptions trajectory_options_from(const std::string& reading) {
    return understood(reading, [](const json& j) { return to_trajectory_options(j); });
}

struct ReadingOpener::Memory {
    /// What was read last, and the words that asked for it.
    template <class T>
    struct Last {
        std::string words;
        std::shared_ptr<const T> value;

        template <class Read>
        std::shared_ptr<const T> get(const std::string& wanted, const Read& read) {
            if (!value || words != wanted) {
                value = read();
                words = wanted;
            }
            return value;
        }
    };
    std::mutex mutex;
    Last<Adjustment> adjustment;
    Last<TrackedBoxes> tracked;
};

ReadingOpener::ReadingOpener() : memory_(std::make_shared<Memory>()) {}

std::unique_ptr<PointFile> ReadingOpener::operator()(const std::filesystem::path& path,
                                                     const std::string& reading) const {
    std::shared_ptr<const TrackedBoxes> tracked;
    const ReadOptions options = understood(reading, [&](const json& j) {
        ReadOptions o = to_read_options(j);
        const std::lock_guard lock(memory_->mutex);
        if (j.contains("adjusted"))
            o.adjustment = memory_->adjustment.get(
                j["adjusted"].dump() + j.value("trajectory", json::object()).dump(),
                [&] { return adjustment_from(j["adjusted"], to_trajectory_options(j)); });
        if (j.contains("tracks"))
            tracked = memory_->tracked.get(j["tracks"].dump(), [&] { return tracked_from(j["tracks"]); });
        return o;
    });
    auto file = open_point_file(path, options);
    return tracked ? without_tracked(std::move(file), std::move(tracked), path.string()) : std::move(file);
}

Trajectory trajectory_by_reading(const std::filesystem::path& path, const std::string& reading) {
    return read_trajectory(path, trajectory_options_from(reading));
}

}  // namespace citysplat::io
