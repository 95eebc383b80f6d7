#pragma once

#include "core/cancel.hpp"
#include "io/input/input_list.hpp"
#include "model/class_map.hpp"
#include "model/trajectory.hpp"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace citysplat::objects {

/// The scans that objects are cut from.
struct ScanInputs {
    std::vector<InputSource> sources;
    ReadOptions reading;
    Trajectory trajectory;  ///< of the sensor; may be empty
    ClassMap classes;       ///< what the labels mean; the map "none" when nobody said
};

/// A piece of a file, with times and sensor positions filled in where they can be known.
struct ScanPiece {
    PointBatch points;
    double begin_s = 0, end_s = 0;  ///< of its points
    bool sweep = false;             ///< it is a whole file that lasts a second at most
};

/// Calls use(piece) for the pieces of a file, in order: one for a sweep. Points that were withheld are left
/// out. Throws InputError naming the file when its points have no times.
void read_pieces(const ScanInputs& inputs, std::size_t source, const CancelToken& cancel,
                 const std::function<void(const ScanPiece&)>& use);

}  // namespace citysplat::objects
