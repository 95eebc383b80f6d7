#include "view/camera.hpp"

#include "core/math/math_hd.hpp"

namespace citysplat {

double Camera::focal_px() const {
    const auto half = exact::sin_cos(horizontal_fov_rad / 2);
    return width / 2.0 * half.cos / half.sin;
}

Vec3d Camera::direction(double px, double py) const {
    const Vec3d in_camera{focal_px(), width / 2.0 - px, height / 2.0 - py};
    return rotate(world_from_camera.rotation, normalized(in_camera));
}

std::optional<Camera::Projection> Camera::project(Vec3d world) const {
    const Vec3d p = rotate(conjugate(world_from_camera.rotation), world - world_from_camera.translation);
    if (p.x <= 0) return std::nullopt;
    const double f = focal_px();
    return Projection{width / 2.0 - f * p.y / p.x, height / 2.0 - f * p.z / p.x, p.x};
}

Pose Camera::look_at(Vec3d eye, Vec3d target) {
    const Vec3d d = target - eye;
    const double yaw = exact::atan2(d.y, d.x);
    const double pitch = -exact::atan2(d.z, std::sqrt(d.x * d.x + d.y * d.y));
    return {eye, from_yaw_pitch_roll(yaw, pitch, 0)};
}

}  // namespace citysplat
