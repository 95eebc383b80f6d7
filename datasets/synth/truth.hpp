#pragma once

#include "datasets/synth/synth.hpp"

#include <filesystem>
#include <memory>
#include <span>

namespace citysplat::synth {

/// The truth of a synthetic drive, asked in world coordinates: how far is a point from the nearest true
/// surface, of which class is that, and what does a ray meet. The city is made around the places asked about
/// and forgotten again, so that memory does not grow with the drive; asking in the order of the drive is
/// fastest.
///
/// Any number of threads may call; calls take turns, and each spreads its points over all cores. Answers do
/// not depend on batching or threads.
class Truth {
  public:
    /// The directory of a drive, or its truth.json. Throws InputError, ConfigError or IoError.
    static Truth load(const std::filesystem::path& path);
    explicit Truth(TruthFile file);
    ~Truth();
    Truth(Truth&&) noexcept;

    const TruthFile& file() const;

    struct Nearest {
        double distance_m = 0;    ///< unsigned; `max_distance_m` when there is nothing nearer
        std::uint16_t label = 0;  ///< 0 when there is nothing nearer
        bool found = false;
    };
    /// Nearest static surface within `max_distance_m`. Requires out.size() == points.size().
    void nearest(std::span<const Vec3d> points, double max_distance_m, std::span<Nearest> out) const;
    /// The same with everything that moves, each point at its own GPS time.
    void nearest_at(std::span<const Vec3d> points, std::span<const double> gps_time, double max_distance_m,
                    std::span<Nearest> out) const;

    struct WorldRay {
        Vec3d origin, direction;  ///< direction: unit
    };
    struct Hit {
        double range_m = 0;
        Vec3d normal{0, 0, 0};  ///< unit, towards the origin
        std::uint16_t label = 0;
        bool found = false;
    };
    /// First static surface on each ray, up to `max_range_m`. Requires out.size() == rays.size().
    void intersect(std::span<const WorldRay> rays, double max_range_m, std::span<Hit> out) const;

    /// The same with everything that moves, each ray at its own GPS time. Fastest when rays that are next to
    /// each other have nearly the same origin and time.
    void intersect_at(std::span<const WorldRay> rays, std::span<const double> gps_time, double max_range_m,
                      std::span<Hit> out) const;

    /// Takes the localisation error out of a point of the drive: where it would be had the recorded
    /// trajectory been the true one. Requires a GPS time of the drive.
    Vec3d without_localisation_error(Vec3d point, double gps_time) const;
    /// The scanner's true pose (body as in trajectory.tum).
    Pose true_pose(double gps_time) const;
    /// What trajectory.tum says: with the localisation error.
    Pose recorded_pose(double gps_time) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace citysplat::synth
