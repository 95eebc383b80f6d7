#pragma once

#include "core/math/vec_hd.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace citysplat::bench {

/// A van of three boxes that drives straight on.
struct MadeVan {
    std::string name;
    Vec3d start;  ///< of the middle of its bottom, at its begin
    double yaw_rad = 0, speed_m_s = 0;
    double begin_s = 0, end_s = 0;  ///< it is there in this span
};

/// A drive whose truth is known: a sensor of 64 beams that turns ten times a second, from its back over its
/// left, and drives along x between two walls, among vans.
struct MadeDrive {
    std::vector<MadeVan> vans;
    double sensor_speed_m_s = 0;
    std::uint32_t turns = 0;
    double range_noise_m = 0.012, box_noise_m = 0.05, box_noise_deg = 1;  ///< standard deviations
    /// What is farther than this from all vans is left out.
    double rim_m = std::numeric_limits<double>::infinity();

    double seconds() const { return 0.1 * turns; }
};

/// Behind the sensor, where its turn begins and ends, one van after the other at 9 to 25 m/s; others in the
/// lanes beside it.
MadeDrive vans_at_the_seam();

/// `count` vans that pass a standing sensor, one after the other: some 50 000 returns on each.
MadeDrive passing_vans(std::uint32_t count);

/// Writes scans/, poses.tum and tracks.csv, with a box of each van for each scan, at the middle of it. The
/// same bytes for any number of threads.
void write_drive(const MadeDrive& drive, const std::filesystem::path& folder);

}  // namespace citysplat::bench
