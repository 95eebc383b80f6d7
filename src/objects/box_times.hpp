#pragma once

#include "core/cancel.hpp"
#include "core/words.hpp"
#include "model/object_box.hpp"
#include "objects/object_points.hpp"
#include "objects/scan_inputs.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::objects {

/// What the time of a tracked box means. People draw boxes around the points of a scan, and the file gives
/// all boxes of a scan one time; but each object was seen at a moment of its own. A car at 15 m/s moves by
/// 1.5 m during a turn of the sensor.
enum class BoxTimes {
    automatic,  ///< whichever of the others puts most points of moving objects into their boxes
    exact,      ///< the box is where it says at the time it says
    begin,      ///< it is around the points of the scan that begins then,
    middle,     ///< … whose middle is then,
    end         ///< … that ends then
};
inline constexpr Words<BoxTimes, 5> kBoxTimes{{"auto", "exact", "begin", "middle", "end"}};

/// How the boxes of some tracks fit the points of some scans.
struct BoxTimeStudy {
    BoxTimes chosen = BoxTimes::exact;
    /// Points inside of the boxes of moving objects, by what times mean (exact, begin, middle, end).
    std::array<std::uint64_t, 4> inside{};
    /// Tracks with the times at which their boxes hold, and poses for a tenth of a second before and after.
    std::vector<Track> tracks;
    /// Points in the boxes of a track: what cutting it will take.
    std::vector<std::uint64_t> points;
};
/// Reads all scans. Tracks without a size get no points.
BoxTimeStudy study_box_times(const ScanInputs& scans, std::span<const Track> tracks, BoxTimes wanted,
                             const CancelToken& cancel);

/// Where the boxes of a track are around the time of a piece: a scan and its boxes may be 0.15 s apart.
Box3d reach_of(const Track& track, const ScanPiece& piece, double grow_m);

}  // namespace citysplat::objects
