#pragma once

#include "core/math/lattice.hpp"
#include "core/math/vec_hd.hpp"
#include "model/track.hpp"

#include <cstdint>
#include <tuple>
#include <vector>

/// Objects made from what real scans saw of them (LiDARsim §3.2): cut out of the scans by tracked boxes, laid
/// on top of one another, completed by their mirror image and turned into splats.
namespace citysplat::objects {

/// A point in the frame of an object (model/track.hpp), on the lattice of 2⁻¹³ m.
struct ObjectPoint {
    Vec3d place{0, 0, 0};      ///< metres, whole lattice steps
    Vec3d to_sensor{0, 0, 0};  ///< from the point to the sensor, in the frame of the object; zeros: unknown
    double time_s = 0;
    std::uint16_t intensity = 0, label = 0;
};

/// The canonical order of points: a set of points has one, whatever files they come from.
inline bool comes_before(const ObjectPoint& a, const ObjectPoint& b) {
    const auto all = [](const ObjectPoint& p) {
        return std::tie(p.place.x, p.place.y, p.place.z, p.time_s, p.intensity, p.label, p.to_sensor.x,
                        p.to_sensor.y, p.to_sensor.z);
    };
    return all(a) < all(b);
}

inline Vec3d on_lattice(Vec3d p) {
    return {to_metres(to_lattice(p.x)), to_metres(to_lattice(p.y)), to_metres(to_lattice(p.z))};
}

/// What one look of the sensor saw of an object.
struct ObjectFrame {
    double time_s = 0;                ///< mean of its points
    std::vector<ObjectPoint> points;  ///< in canonical order
};

/// The points of one track, look by look, in order of time.
struct ObjectCut {
    Track track;  ///< with the times at which its boxes hold
    std::vector<ObjectFrame> frames;
    std::uint64_t points = 0;         ///< of all frames
    std::uint64_t ground_points = 0;  ///< left out: ground under the object
    std::uint64_t other_points = 0;   ///< left out: of a class that cannot be the object
};

}  // namespace citysplat::objects
