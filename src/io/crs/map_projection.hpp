#pragma once

#include "core/math/vec_hd.hpp"

#include <string_view>

namespace citysplat::io {

/// Latitude and longitude to the plane, for trajectories that come as such (SBET). Knows UTM on WGS 84
/// (EPSG:32601–32660, 32701–32760) and ETRS89 (EPSG:25828–25838) and Lambert-93 (EPSG:2154); sub-millimetre
/// within the zone. Same bits on every machine.
class MapProjection {
  public:
    /// Throws UsageError for other codes.
    explicit MapProjection(int epsg);

    struct Plane {
        double east_m, north_m;
    };
    /// Requires |latitude| < π/2.
    Plane project(double latitude_rad, double longitude_rad) const;
    double central_longitude_rad() const { return central_rad_; }
    /// Azimuth of true north on the grid, clockwise.
    double convergence_rad(double latitude_rad, double longitude_rad) const;

  private:
    Plane transverse_mercator(double latitude_rad, double longitude_rad) const;
    Plane lambert_conic(double latitude_rad, double longitude_rad) const;

    bool conic_ = false;
    double axis_m_ = 6378137.0, flattening_ = 0;
    double central_rad_ = 0, false_north_m_ = 0;
};

}  // namespace citysplat::io
