#pragma once

#include "core/math/vec_hd.hpp"
#include "model/trajectory.hpp"

#include <optional>

namespace citysplat {

/// A pinhole camera in the frame of vehicles: x forward, y left, z up, so that a pose of a trajectory is a
/// camera.
struct Camera {
    Pose world_from_camera;
    int width = 1280, height = 720;
    double horizontal_fov_rad = 1.3;

    /// Unit direction (world) through the point (px, py) of the image; (0, 0) is the outer corner of the top
    /// left pixel.
    Vec3d direction(double px, double py) const;

    struct Projection {
        double px, py, depth_m;
    };
    /// Where a world point appears; nothing when it is behind the camera. May lie outside the image.
    std::optional<Projection> project(Vec3d world) const;

    /// A camera at `eye` that sees `target` in the middle, horizon level.
    static Pose look_at(Vec3d eye, Vec3d target);

  private:
    double focal_px() const;
};

}  // namespace citysplat
