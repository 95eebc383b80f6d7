#pragma once

#include "core/cancel.hpp"
#include "io/input/input_list.hpp"
#include "model/recorded_scan.hpp"
#include "model/trajectory.hpp"
#include "sim/recorded/beams.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::sim {

/// Real scans to be read as rays: from where the sensor was at each point's own time, as `build` knows it
/// (a column of the file, the pose of a scan, or the trajectory).
///
/// A file that lasts at most a second is one sweep: its beams are found, and the rays that did not come back
/// are put where its range image has gaps. A longer one is a survey: it is read in pieces, whose beams are
/// not known.
///
/// Returns of the recording car, where its drive knows the car, are kept and marked: they are no surface of
/// the city, but say that nothing of it was seen there.
class RecordedDrive {
  public:
    /// `trajectory` may be empty.
    RecordedDrive(std::vector<InputSource> sources, ReadOptions reading, Trajectory trajectory);

    std::span<const InputSource> sources() const { return sources_; }
    const BeamTable& beams() const { return beams_; }

    /// Finds the beams of the sensor in some of the scans. Without it scans have neither beams nor empty
    /// rays.
    void find_beams(const CancelToken& cancel);
    /// Instead of those that were found.
    void use_beams(BeamTable beams) { beams_ = std::move(beams); }

    /// Calls use(scan) for the scans of one file, in order. Throws InputError naming the file when no point
    /// of it has a sensor position.
    void read(std::size_t source, const CancelToken& cancel,
              const std::function<void(const RecordedScan&)>& use) const;

  private:
    /// The whole file, without beams; nothing when it is no sweep.
    std::optional<RecordedScan> read_sweep(std::size_t source, const CancelToken& cancel) const;
    std::unique_ptr<PointFile> open(const InputSource& source) const;
    std::optional<Pose> pose_at(const InputSource& source, double time_s) const;
    RecordedScan rays_of(const InputSource& source, const PointBatch& batch) const;

    std::vector<InputSource> sources_;
    ReadOptions reading_;
    Trajectory trajectory_;
    BeamTable beams_;
};

}  // namespace citysplat::sim
