#pragma once

#include "core/hash.hpp"
#include "sim/learn/scan_grid.hpp"
#include "sim/learn/window_walk.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::sim::learn {

/// What a real sensor said about a ray.
enum class Answer : std::uint8_t {
    unknown,  ///< nobody knows whether it was fired
    empty,    ///< fired, without return
    returned
};

/// A ray of a real scan.
struct Observation {
    Answer answer = Answer::unknown;
    float range_m = 0;
    float intensity = -1;  ///< 0 … 1; below 0: not recorded
};

/// A real scan beside what the model of the city says about the same rays.
struct LearningScan {
    double time_s = 0;
    std::vector<Return> simulated;      ///< every ray of the sensor's scan, without noise and drops
    std::vector<Observation> observed;  ///< of the same rays
};

/// Rays that met something in the model and whose fate in reality is known: what a model is trained on.
struct LearningRays {
    std::vector<std::array<float, kFeatures>> features;  ///< NaN: not recorded; kMask is filled in later
    std::vector<std::uint16_t> beam, mask_cell;
    std::vector<std::uint8_t> lost;
    std::vector<float> real_intensity;  ///< of returns from the surface that the model has; below 0: none
    /// The normal numbers of the ray as NoiseMix mixes them.
    struct Noise {
        float scan, place, ray;
    };
    std::vector<Noise> noise;
    std::vector<std::uint32_t> left;     ///< the ray of the same beam one column before; kNoRay: none
    std::vector<std::uint32_t> again;    ///< a ray of the next scan into the same half metre; kNoRay: none
    std::vector<std::size_t> scan_ends;  ///< rays of scan s end there

    std::size_t size() const { return lost.size(); }
};
inline constexpr std::uint32_t kNoRay = 0xffffffff;

/// Collects scans in order of time.
class LearningSet {
  public:
    explicit LearningSet(const Sensor& sensor) : grid_(sensor) {}

    /// Throws InputError when the scan has another number of rays than the sensor.
    void add(const LearningScan& scan);

    const ScanGrid& grid() const { return grid_; }
    const LearningRays& rays() const { return rays_; }
    std::size_t scans() const { return rays_.scan_ends.size(); }
    Hash128 digest() const { return digest_.finish(); }

  private:
    void link_to_last_scan(std::size_t first);

    ScanGrid grid_;
    LearningRays rays_;
    WindowWalk walk_;
    std::vector<std::uint64_t> voxels_, last_voxels_;  ///< of the rays of this and the last scan
    Hasher digest_;
};

}  // namespace citysplat::sim::learn
