#include "io/input/reading.hpp"

#include "core/error.hpp"
#include "core/printable.hpp"
#include "io/input/open_point_file.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::io {

namespace {

using nlohmann::json;

json to_json(const Pose& pose) {
    const auto& [t, q] = pose;
    return json::array({t.x, t.y, t.z, q.x, q.y, q.z, q.w});
}

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
void put_path(json& j, const std::string& path) {
    if (is_utf8(path)) {
        j["labels"] = path;
        return;
    }
    json bytes = json::array();
    for (const char c : path) bytes.push_back(static_cast<unsigned char>(c));
    j["labels_bytes"] = std::move(bytes);
}

std::filesystem::path get_path(const json& j) {
    if (!j.contains("labels_bytes")) return j.value("labels", "");
    std::string path;
    for (const json& byte : j["labels_bytes"]) path += static_cast<char>(byte.get<unsigned char>());
    return path;
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
    o.labels = get_path(j);
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
        put_path(j, std::filesystem::absolute(source.labels).string());
        j["labels_hash"] = hash_file(source.labels, CancelToken()).hex();
    }
    if (source.world_from_sensor) j["world_from_sensor"] = to_json(*source.world_from_sensor);
    if (source.scan_time_s) j["scan_time_s"] = *source.scan_time_s;
    if (json t = to_json(trajectory); !t.empty()) j["trajectory"] = std::move(t);
    return j.empty() ? std::string() : dumped(j);
}

std::string refreshed_reading(const std::string& reading) {
    json j = parse(reading);
    const std::filesystem::path labels = understood(reading, get_path);
    if (labels.empty() || !std::filesystem::exists(labels)) return reading;
    j["labels_hash"] = hash_file(labels, CancelToken()).hex();
    return dumped(j);
}

ReadOptions read_options_from(const std::string& reading) {
    return understood(reading, [](const json& j) { return to_read_options(j); });
}

TrajectoryOptions trajectory_options_from(const std::string& reading) {
    return understood(reading, [](const json& j) { return to_trajectory_options(j); });
}

std::unique_ptr<PointFile> open_by_reading(const std::filesystem::path& path, const std::string& reading) {
    return open_point_file(path, read_options_from(reading));
}

Trajectory trajectory_by_reading(const std::filesystem::path& path, const std::string& reading) {
    return read_trajectory(path, trajectory_options_from(reading));
}

}  // namespace citysplat::io
