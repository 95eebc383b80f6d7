#pragma once

#include "core/math/vec_hd.hpp"
#include "tiling/toy_cloud.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// A street of boxes that a scanner drives through, ray by ray: what it sees, what hides what and what it
/// sees through are as in the world.
namespace citysplat::test {

struct Box {
    Vec3d min, max;
    std::uint16_t label = 0;
};

struct Scene {
    std::vector<Box> boxes;  ///< and the ground at z = 0

    void add(Vec3d min, Vec3d size, std::uint16_t label) { boxes.push_back({min, min + size, label}); }
    /// Walls on both sides, kerbs, a fence of thin bars, a tree of leaves, lamp posts and parked things, over
    /// so many metres from x = 0.
    static Scene street(double length_m);
};

/// Labels of a scene.
inline constexpr std::uint16_t kGround = 1, kWall = 2, kThing = 3, kBars = 4, kLeaves = 5;

struct MadeDrive {
    std::uint64_t seed = 1;         ///< of the noise
    double begin_s = 1000;          ///< clock at the start
    double y_m = 0;                 ///< lane
    double noise_m = 0.012;         ///< of ranges
    double localisation_m = 0.015;  ///< amplitude of slow waves of the recorded position, per axis
    Vec3d shift{0, 0, 0};           ///< of everything: a wrong trajectory
};

/// Drives from x = 0 to `length_m` and writes DIR/NAME.cloud and DIR/NAME.tum. Returns the number of points.
std::size_t drive_through(const Scene& scene, double length_m, const MadeDrive& drive,
                          const std::filesystem::path& directory, const std::string& name);

}  // namespace citysplat::test
