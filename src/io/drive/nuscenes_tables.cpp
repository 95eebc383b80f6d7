#include "io/drive/nuscenes_tables.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "io/drive/nuscenes_rows.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <unordered_map>

namespace citysplat::io {

namespace {

/// A row of sample_data, until its poses are known.
struct Sweep {
    std::string file, ego_pose, calibration;
    double time_s;
    std::size_t scene;
};

/// Scenes by the token of each of their samples.
class Scenes {
  public:
    Scenes(const NuscenesTables& tables, const std::function<bool(const std::string&)>& wanted) {
        std::unordered_map<std::string, std::size_t> by_token;
        bool told = tables.read_if_there("scene", [&](const NuscenesRow& row) {
            const std::string name = row.text("name");
            if (!wanted(name)) return;
            by_token[row.text("token")] = scenes.size();
            scenes.push_back({name, {}, {}});
        });
        told = tables.read_if_there("sample", [&](const NuscenesRow& row) {
            const auto found = by_token.find(row.text("scene_token"));
            if (told && found != by_token.end()) by_sample_[row.text("token")] = found->second;
        }) && told;
        if (told) return;
        constexpr const char* kNameless = "scene without a name";
        all_are_one_ = wanted(kNameless);
        scenes.assign(1, {kNameless, {}, {}});
    }
    std::optional<std::size_t> of_sample(const std::string& token) const {
        if (all_are_one_) return 0;
        const auto found = by_sample_.find(token);
        return found == by_sample_.end() ? std::nullopt : std::optional(found->second);
    }

    std::vector<NuscenesScene> scenes;

  private:
    std::unordered_map<std::string, std::size_t> by_sample_;
    bool all_are_one_ = false;
};

/// Where the sensors of a channel sit on the car.
class Mounts {
  public:
    Mounts(const NuscenesTables& tables, const std::string& channel) : channel_(channel) {
        std::set<std::string> sensors;
        told_ = tables.read_if_there("sensor", [&](const NuscenesRow& row) {
            if (row.text("channel") == channel) sensors.insert(row.text("token"));
        });
        if (told_ && sensors.empty()) throw InputError("sensor.json: no sensor has the channel " + channel);
        tables.read("calibrated_sensor", [&](const NuscenesRow& row) {
            if (!told_ || sensors.contains(row.text("sensor_token"))) mounts_[row.text("token")] = row.pose();
        });
    }
    /// Is a sweep of the channel?
    bool are_of(const std::string& calibration, const NuscenesRow& sweep) const {
        return mounts_.contains(calibration) &&
               (told_ || sweep.text("filename").find(channel_) != std::string::npos);
    }
    /// Car from sensor.
    const Pose& of(const std::string& calibration) const { return mounts_.at(calibration); }

  private:
    std::string channel_;
    bool told_ = false;
    std::unordered_map<std::string, Pose> mounts_;
};

}  // namespace

OpenTable tables_in_folder(const std::filesystem::path& folder) {
    return [folder](const std::string& table) -> std::unique_ptr<std::istream> {
        const std::filesystem::path path = folder / (table + ".json");
        if (!std::filesystem::exists(path)) return nullptr;
        require_file(path);  // a stream would wait for the other end of a FIFO
        auto in = std::make_unique<std::ifstream>(path);
        if (!*in) throw IoError("cannot open " + path.string());
        return in;
    };
}

std::vector<NuscenesScene> read_nuscenes_tables(const OpenTable& open, const std::string& channel,
                                                const std::function<bool(const std::string& scene)>& wanted,
                                                const CancelToken& cancel) {
    const NuscenesTables tables(open, cancel);
    const Mounts mounts(tables, channel);
    Scenes scenes(tables, wanted);
    constexpr double kMicroseconds = 1e-6;
    constexpr NumberRange kTimestamp{0, 1e17, "µs"};
    std::vector<Sweep> sweeps;
    std::unordered_map<std::string, Pose> cars;
    tables.read("sample_data", [&](const NuscenesRow& row) {
        std::string calibration = row.text("calibrated_sensor_token");
        const auto scene = scenes.of_sample(row.text("sample_token"));
        if (!scene || !mounts.are_of(calibration, row)) return;
        sweeps.push_back({row.text("filename"), row.text("ego_pose_token"), std::move(calibration),
                          row.number("timestamp", kTimestamp) * kMicroseconds, *scene});
        cars.emplace(sweeps.back().ego_pose, Pose{});
    });
    std::set<std::string> known;
    tables.read("ego_pose", [&](const NuscenesRow& row) {
        const auto found = cars.find(row.text("token"));
        if (found == cars.end()) return;
        found->second = row.pose();
        known.insert(found->first);
    });
    for (const Sweep& sweep : sweeps) {
        if (!known.contains(sweep.ego_pose))
            throw InputError("ego_pose.json: no row has the token of " + sweep.file + " (" + sweep.ego_pose +
                             "); without its row in sample_data.json the others can be read");
        const Pose& mount = mounts.of(sweep.calibration);
        NuscenesScene& scene = scenes.scenes[sweep.scene];
        scene.lever_arm_m = mount.translation;
        scene.scans.push_back({sweep.file, sweep.time_s, cars.at(sweep.ego_pose) * mount});
    }
    // Tables that were put together from several excerpts name a sweep more than once.
    const auto key = [](const NuscenesScan& scan) { return std::tie(scan.time_s, scan.file); };
    for (auto& [name, scans, lever_arm_m] : scenes.scenes) {
        std::sort(scans.begin(), scans.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        scans.erase(std::unique(scans.begin(), scans.end(),
                                [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                    scans.end());
    }
    return std::move(scenes.scenes);
}

}  // namespace citysplat::io
