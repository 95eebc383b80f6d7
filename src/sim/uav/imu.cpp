#include "sim/uav/imu.hpp"

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"

#include <cmath>

namespace citysplat::sim {

ImuSample ideal_imu(const Quaternion& world_from_body, Vec3d acceleration_m_s2, Vec3d turn_rad_s) {
    return {turn_rad_s, rotate(conjugate(world_from_body), acceleration_m_s2 + Vec3d{0, 0, kGravity_m_s2})};
}

ImuNoise::ImuNoise(const ImuErrors& errors, double rate_hz, std::uint64_t seed)
    : errors_(errors), rate_hz_(rate_hz), key_(rng::key(seed, 0x696d75)) {}

ImuSample ImuNoise::measured(const ImuSample& truth) {
    constexpr std::uint64_t kPurposes = 4;
    const auto draw = [this](std::uint64_t purpose) {
        const std::uint64_t counter = 3 * (number_ * kPurposes + purpose);
        return Vec3d{rng::gaussian(key_, counter), rng::gaussian(key_, counter + 1),
                     rng::gaussian(key_, counter + 2)};
    };
    // A density is the deviation of the mean over a second; a walk that of the bias after a second.
    const double per_sample = std::sqrt(rate_hz_), per_step = std::sqrt(1 / rate_hz_);
    bias_.turn_rad_s = bias_.turn_rad_s + draw(0) * (errors_.turn_walk * per_step);
    bias_.force_m_s2 = bias_.force_m_s2 + draw(1) * (errors_.force_walk * per_step);
    const ImuSample sample{
        truth.turn_rad_s + bias_.turn_rad_s + draw(2) * (errors_.turn_density * per_sample),
        truth.force_m_s2 + bias_.force_m_s2 + draw(3) * (errors_.force_density * per_sample)};
    ++number_;
    return sample;
}

}  // namespace citysplat::sim
