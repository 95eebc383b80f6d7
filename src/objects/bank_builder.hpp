#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "objects/bank.hpp"
#include "objects/box_times.hpp"
#include "objects/registration.hpp"
#include "objects/scan_inputs.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::objects {

/// What a bank is made from. Requires that both live longer.
struct BankInputs {
    std::span<const Track> tracks;
    const ScanInputs& scans;
};

struct BankBuildOptions {
    std::string source;  ///< names begin with it, followed by that of the track
    BoxTimes box_times = BoxTimes::automatic;
    bool align = true;                 ///< false: frames stay where their boxes have them
    bool mirror = true;                ///< complete vehicles by their mirror image
    std::uint64_t least_points = 200;  ///< of an object
    double least_kept = 0.6;           ///< share of the points of a track that fit together
    double most_thickness_m = 0.06;    ///< mean, of its surfaces
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;  ///< for points; tracks are cut in groups
    RegistrationOptions registration;

    /// Throws UsageError.
    void validate() const;
};

/// What became of one track.
struct TrackOutcome {
    std::string track, class_name;
    std::uint64_t points = 0;  ///< cut out of the scans, without ground
    std::uint32_t looks = 0, frames = 0;
    double speed_m_s = 0;  ///< mean
    double thickness_by_boxes_m = 0, thickness_m = 0;
    std::optional<BankObject> object;  ///< as it is in the bank; nothing: left out
    std::string reason;                ///< why it was left out
    /// The track as the alignment corrected it: a pose for each look that fits, and where there is none for a
    /// while the poses of the boxes with the correction of the nearest. As given where no look fits.
    Track aligned;
};

struct BankReport {
    BoxTimes box_times = BoxTimes::exact;   ///< what the times of boxes were taken for
    std::array<std::uint64_t, 4> inside{};  ///< BoxTimeStudy::inside
    std::vector<TrackOutcome> tracks;       ///< as given
    std::size_t kept() const;
    /// TrackOutcome::aligned of all tracks, each naming its object of the bank where there is one.
    std::vector<Track> aligned_tracks() const;
};

/// Cuts every track out of the scans, aligns its frames, completes it and puts it into the bank. The same
/// bytes for any number of threads, budget and order of scans. Tracks without a size are left out.
BankReport build_bank(BankWriter& bank, const BankInputs& inputs, const BankBuildOptions& options,
                      const CancelToken& cancel, Progress& progress);

/// Whether things of the class are alike on their left and on their right: cars, trucks, buses, trams.
bool is_symmetric(std::string_view class_name);
/// Whether they are stiff: all but people and animals.
bool is_rigid(std::string_view class_name);

}  // namespace citysplat::objects
