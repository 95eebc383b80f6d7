#pragma once

#include "core/math/vec_hd.hpp"
#include "model/trajectory.hpp"
#include "sim/sensor/firing_hd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::bench {

/// A point of a thinned-out map and the plane around it.
struct MapPoint {
    Vec3f place;  ///< metres from DepthMap::origin_m
    Vec3f normal;
    bool flat;  ///< its neighbours lie on a plane (γ of the paper)
};

/// What MARSIM (Kong et al., RA-L 2023, §III-A) keeps of a point cloud: one point, the mean, for each cube of
/// `cube_m`, with a plane through its neighbours.
struct DepthMap {
    double cube_m = 0.1;
    Vec3d origin_m{0, 0, 0};
    std::vector<MapPoint> points;
    std::vector<std::uint32_t> cell_ends;  ///< points of a cell of kCell_m end here
    std::vector<Vec3f> cells;              ///< least corners

    static constexpr float kCell_m = 8;
};
DepthMap make_depth_map(std::span<const Vec3d> cloud, double cube_m);

/// Angles that an image covers around the x axis of the sensor.
struct DepthView {
    double half_horizontal_rad, half_vertical_rad, pixel_rad;
    float min_range_m, max_range_m;
};

/// Renders depth images of a map as MARSIM's CPU renderer does, written from the paper: every point is
/// projected and fills the pixels within θ_max = asin(√3/2 · cube / depth) (eq. 1) with its depth or, with
/// `plane_correction` and where its neighbours lie on a plane, with the depth at which the pixel's ray meets
/// that plane; of several the least depth stays. A pixel whose ray meets the plane outside of the sphere
/// around the point's cube, or around the pixel where that is larger, gets nothing from it: the paper does
/// not say, and far behind the cube is no substance of its. One thread.
class DepthImage {
  public:
    explicit DepthImage(const DepthView& view);

    void render(const DepthMap& map, const Pose& world_from_sensor, bool plane_correction);
    /// World points of the pixels that the pattern of a sensor looks through, one for each firing that meets
    /// something.
    void read(std::span<const sim::Firing> pattern, const Pose& world_from_sensor,
              std::vector<Vec3d>& out) const;

  private:
    int column_at(float azimuth) const { return static_cast<int>((azimuth + half_h_) * per_rad_); }
    int row_at(float elevation) const { return static_cast<int>((elevation + half_v_) * per_rad_); }
    void splat(const MapPoint& point, Vec3f place, Vec3f normal, float cube_m);

    DepthView view_;
    float half_h_, half_v_, per_rad_;
    int width_, height_;
    std::vector<Vec3f> rays_;
    std::vector<float> depth_;
};

}  // namespace citysplat::bench
