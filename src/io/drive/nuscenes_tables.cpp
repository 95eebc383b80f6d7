#include "io/drive/nuscenes_tables.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace citysplat::io {

namespace {

using nlohmann::json;

/// One row of a table, with the words for what is wrong with it.
class Row {
  public:
    Row(const json& row, const std::string& table, std::size_t number)
        : row_(row), table_(table), number_(number) {}

    std::string text(const char* field) const {
        const json* value = find(field);
        if (!value || !value->is_string()) fail(field, "expected a text");
        return value->get<std::string>();
    }
    double number(const char* field, const NumberRange& range) const {
        const json* value = find(field);
        if (!value || !value->is_number() || !range.contains(value->get<double>()))
            fail(field, "expected a number " + range.text());
        return value->get<double>();
    }
    /// Translation and rotation (w first).
    Pose pose() const {
        const auto t = numbers("translation", 3), q = numbers("rotation", 4);
        const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        if (!(std::fabs(n - 1) < 0.02)) fail("rotation", "expected a quaternion of length 1");
        return {{t[0], t[1], t[2]}, {q[1] / n, q[2] / n, q[3] / n, q[0] / n}};
    }
    [[noreturn]] void fail(const char* field, const std::string& expected) const {
        throw InputError(table_ + ".json: row " + std::to_string(number_) + ": " + field + ": " + expected);
    }

  private:
    const json* find(const char* field) const {
        const auto found = row_.find(field);
        return found == row_.end() ? nullptr : &*found;
    }
    std::vector<double> numbers(const char* field, std::size_t count) const {
        const json* value = find(field);
        const std::string expected = "expected " + std::to_string(count) + " numbers";
        if (!value || !value->is_array() || value->size() != count) fail(field, expected);
        std::vector<double> result;
        for (const json& v : *value) {
            if (!v.is_number() || !ranges::kPosition_m.contains(v.get<double>())) fail(field, expected);
            result.push_back(v.get<double>());
        }
        return result;
    }

    const json& row_;
    const std::string& table_;
    std::size_t number_;
};

/// Calls `use` with each row; rows are forgotten as soon as they are used.
void read_rows(const OpenTable& open, const std::string& table, const std::function<void(const Row&)>& use) {
    const auto in = open(table);
    std::size_t number = 0;
    bool is_table = false;
    const auto event = [&](int depth, json::parse_event_t kind, json& parsed) {
        if (depth != 1 || kind != json::parse_event_t::object_end) return true;
        use(Row(parsed, table, ++number));
        return false;
    };
    try {
        is_table = json::parse(*in, event).is_array();
    } catch (const json::exception& e) {
        throw InputError(table + ".json: behind row " + std::to_string(number) + ": " + printable(e.what()));
    }
    if (!is_table) throw InputError(table + ".json: expected an array of rows");
}

/// A row of sample_data, until its poses are known.
struct Sweep {
    std::string file, ego_pose, calibration;
    double time_s;
    std::size_t scene;
};

/// Scenes by the token of each of their samples.
class Scenes {
  public:
    Scenes(const OpenTable& open, const std::function<bool(const std::string&)>& wanted) {
        std::unordered_map<std::string, std::size_t> by_token;
        read_rows(open, "scene", [&](const Row& row) {
            const std::string name = row.text("name");
            if (!wanted(name)) return;
            by_token[row.text("token")] = scenes.size();
            scenes.push_back({name, {}, {}});
        });
        read_rows(open, "sample", [&](const Row& row) {
            const auto found = by_token.find(row.text("scene_token"));
            if (found != by_token.end()) by_sample_[row.text("token")] = found->second;
        });
    }
    std::optional<std::size_t> of_sample(const std::string& token) const {
        const auto found = by_sample_.find(token);
        return found == by_sample_.end() ? std::nullopt : std::optional(found->second);
    }

    std::vector<NuscenesScene> scenes;

  private:
    std::unordered_map<std::string, std::size_t> by_sample_;
};

/// Car from sensor, by the token of the calibration, of the sensors of a channel.
std::unordered_map<std::string, Pose> read_mounts(const OpenTable& open, const std::string& channel) {
    std::set<std::string> sensors;
    read_rows(open, "sensor", [&](const Row& row) {
        if (row.text("channel") == channel) sensors.insert(row.text("token"));
    });
    if (sensors.empty()) throw InputError("sensor.json: no sensor has the channel " + channel);
    std::unordered_map<std::string, Pose> mounts;
    read_rows(open, "calibrated_sensor", [&](const Row& row) {
        if (sensors.contains(row.text("sensor_token"))) mounts[row.text("token")] = row.pose();
    });
    return mounts;
}

}  // namespace

std::vector<NuscenesScene> read_nuscenes_tables(const OpenTable& open, const std::string& channel,
                                                const std::function<bool(const std::string& scene)>& wanted) {
    const auto mounts = read_mounts(open, channel);
    Scenes scenes(open, wanted);
    constexpr double kMicroseconds = 1e-6;
    constexpr NumberRange kTimestamp{0, 1e17, "µs"};
    std::vector<Sweep> sweeps;
    std::unordered_map<std::string, Pose> cars;
    read_rows(open, "sample_data", [&](const Row& row) {
        std::string calibration = row.text("calibrated_sensor_token");
        const auto scene = scenes.of_sample(row.text("sample_token"));
        if (!scene || !mounts.contains(calibration)) return;
        sweeps.push_back({row.text("filename"), row.text("ego_pose_token"), std::move(calibration),
                          row.number("timestamp", kTimestamp) * kMicroseconds, *scene});
        cars.emplace(sweeps.back().ego_pose, Pose{});
    });
    std::set<std::string> known;
    read_rows(open, "ego_pose", [&](const Row& row) {
        const auto found = cars.find(row.text("token"));
        if (found == cars.end()) return;
        found->second = row.pose();
        known.insert(found->first);
    });
    for (const Sweep& sweep : sweeps) {
        if (!known.contains(sweep.ego_pose))
            throw InputError("ego_pose.json: no row has the token of " + sweep.file + " (" + sweep.ego_pose +
                             ")");
        const Pose& mount = mounts.at(sweep.calibration);
        NuscenesScene& scene = scenes.scenes[sweep.scene];
        scene.lever_arm_m = mount.translation;
        scene.scans.push_back({sweep.file, sweep.time_s, cars.at(sweep.ego_pose) * mount});
    }
    for (NuscenesScene& scene : scenes.scenes)
        std::sort(scene.scans.begin(), scene.scans.end(), [](const NuscenesScan& a, const NuscenesScan& b) {
            return std::tie(a.time_s, a.file) < std::tie(b.time_s, b.file);
        });
    return std::move(scenes.scenes);
}

}  // namespace citysplat::io
