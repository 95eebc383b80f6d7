#pragma once

#include "sim/scan/scan.hpp"
#include "sim/traffic/traffic_plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace citysplat::sim {

/// An object as one scan saw it.
struct SeenBox {
    std::uint32_t actor;
    std::uint64_t returns;
    double time_s;        ///< mean of its returns
    Pose world_from_box;  ///< at that time: middle of the bottom face, x forward
    ObjectSize size;      ///< of what rays can meet
};

/// The boxes of a scenario's actors, for those who learn from its scans. Immutable.
class ObjectBoxes {
  public:
    /// `traffic` must outlive it.
    ObjectBoxes(const Traffic& traffic, std::vector<ActorRow> rows, std::vector<FrameRow> frame_rows = {});

    /// Of every instance with returns, by instance.
    std::vector<SeenBox> seen_in(const Scan& scan) const;
    /// A table that read_tracks() reads.
    std::string csv(std::span<const SeenBox> boxes) const;
    /// Lines of KITTI's label_02, in the frame of a camera that looks forward from where the sensor is when
    /// the scan begins: x right, y down, z forward. Its calibration is kCalibration.
    std::string kitti(std::span<const SeenBox> boxes, const Scan& scan) const;
    static constexpr const char* kCalibration =
        "R_rect 1 0 0 0 1 0 0 0 1\nTr_velo_cam 0 -1 0 0 0 0 -1 0 1 0 0 0\n";
    /// All actors, and the instances of recorded frames, which have neither number nor size: objects.csv.
    std::string table() const;

  private:
    struct Local {
        Pose object_from_box;
        ObjectSize size;
    };
    const Traffic& traffic_;
    std::vector<ActorRow> rows_;
    std::vector<FrameRow> frame_rows_;
    std::vector<Local> local_;  ///< of each actor
    std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> by_instance_;
};

}  // namespace citysplat::sim
