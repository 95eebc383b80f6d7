#pragma once

#include "core/math/host_device.hpp"
#include "core/math/rng_hd.hpp"
#include "sim/learn/features_hd.hpp"
#include "sim/learn/network_hd.hpp"
#include "sim/sensor/sensor_model_hd.hpp"

#include <cmath>
#include <cstdint>

/// A finished scan through the eyes of a learned model: which of its returns the sensor would have lost, and
/// how bright the others would have been. One ray at a time; learned_pass.cpp does the same for whole scans,
/// faster, with the same bits.
namespace citysplat::sim::learn {

/// From this probability on a place of the mask is the own car, and nothing returns from behind it.
inline constexpr float kOwnCar = 0.5f;

/// The rays of a spinning head as an image: rows are beams in order of elevation, columns come in the order
/// in which they are fired. Ray = column × beams + beam.
struct GridView {
    std::uint32_t beams, columns;
    std::uint32_t wraps;               ///< 1: the first column is the neighbour of the last
    const std::uint32_t* beam_of_row;  ///< `beams` of them, from low to high
};

/// Drops come in clumps: the random number of a ray is a mix of one that all rays into the same half metre
/// share during a scan, one that a cubic metre keeps for ever, and one of its own. The squares of the weights
/// sum to one, so the mix is a standard normal number whatever they are.
struct NoiseMix {
    double scan, place, ray;
};

struct NoiseKeys {
    std::uint64_t scan;   ///< scan_key()
    std::uint64_t place;  ///< place_key()
};
CITYSPLAT_HD constexpr std::uint64_t place_key(std::uint64_t seed) { return rng::key(seed, 0x706c616365); }

inline constexpr std::uint32_t kResidualLevels = 16, kResidualSteps = 64;
/// Steps of the table, in units of a standard normal number.
inline constexpr double kLeastNormal = -3.15, kStepsPerNormal = 10;

/// What is left of real intensities when gain and network of a model are taken off: the bright tail, which no
/// mean can give back. For each level of the corrected intensity what real ones differ by, at quantiles that
/// a standard normal number reaches in steps of 0.1. `share` is the part of the number's variance that rays
/// into the same half metre have in common during a scan.
struct ResidualTable {
    double share;
    float values[kResidualLevels][kResidualSteps];
};

/// Of an intensity from 0 to 1: more levels where it is dark, as most surfaces are.
CITYSPLAT_HD inline std::uint32_t residual_level(float intensity) {
    const auto level = static_cast<std::uint32_t>(std::sqrt(intensity) * static_cast<float>(kResidualLevels));
    return level < kResidualLevels ? level : kResidualLevels - 1;
}

/// The residual that belongs to a standard normal number.
CITYSPLAT_HD inline float residual_at(const ResidualTable& table, float intensity, double normal) {
    const float(&row)[kResidualSteps] = table.values[residual_level(intensity)];
    const double place = (normal - kLeastNormal) * kStepsPerNormal;
    if (!(place > 0)) return row[0];
    if (place >= kResidualSteps - 1) return row[kResidualSteps - 1];
    const auto i = static_cast<std::uint32_t>(place);
    return row[i] + static_cast<float>(place - i) * (row[i + 1] - row[i]);
}

/// Everything that decides what becomes of a scan. Tables by row have the order of the grid.
struct LearnedView {
    GridView grid;
    const Return* returns;
    const float* mask;            ///< by column × beams + row
    const float* drop_bias;       ///< by row × 16
    const float* intensity_bias;  ///< by row × 16
    const float* gain;            ///< by row; nullptr: intensities stay as they are
    Normalisation norm;
    Network drop, intensity;
    NoiseMix mix;
    NoiseKeys keys;
    const ResidualTable* residuals;  ///< nullptr: intensities have no noise
};

/// A uniform number of the voxel of `position`.
CITYSPLAT_HD inline double voxel_uniform(std::uint64_t key, Vec3d position, double per_metre) {
    // Rounding down without a call of the C library.
    const auto cell = [per_metre](double v) {
        const double scaled = v * per_metre;
        const auto whole = static_cast<std::int64_t>(scaled);
        return static_cast<std::uint64_t>(whole - (scaled < static_cast<double>(whole) ? 1 : 0));
    };
    const std::uint64_t word = cell(position.x) * 0x9e3779b97f4a7c15ull +
                               cell(position.y) * 0xc2b2ae3d27d4eb4full +
                               cell(position.z) * 0xd6e8feb86659fd93ull;
    return rng::uniform(rng::key(key, word), 0);
}

/// The three numbers of a ray before they are made normal.
struct NoiseDraws {
    double scan, place, ray;
};
CITYSPLAT_HD inline NoiseDraws draws_of(const NoiseKeys& keys, const Return& r, std::uint64_t ray) {
    return {voxel_uniform(keys.scan, r.position, 2), voxel_uniform(keys.place, r.position, 1),
            uniform_of(keys.scan, ray, Purpose::learned)};
}
CITYSPLAT_HD inline double mixed(const NoiseMix& mix, const NoiseDraws& u) {
    constexpr double kOffZero = 0x1.0p-54;  // where the quantile is infinite
    return mix.scan * normal_quantile(u.scan + kOffZero) + mix.place * normal_quantile(u.place + kOffZero) +
           mix.ray * normal_quantile(u.ray + kOffZero);
}

/// `score` is the output of the drop network: the return is lost with probability Φ(score).
CITYSPLAT_HD inline bool is_lost(const LearnedView& view, float score, const Return& r, std::uint64_t ray) {
    return mixed(view.mix, draws_of(view.keys, r, ray)) < static_cast<double>(score);
}

/// Recorded intensity times the gain of the beam, plus what the network adds.
CITYSPLAT_HD inline std::uint16_t corrected_intensity(std::uint16_t recorded, float gain, float correction) {
    const float value = static_cast<float>(recorded) * kIntensityScale * gain + correction;
    return static_cast<std::uint16_t>(larger(smaller(value, 1.0f), 0.0f) * 65535.0f + 0.5f);
}

/// A corrected intensity with noise that surfaces share in part. Its numbers are not those of the drops: what
/// comes back would be brighter than what is lost.
CITYSPLAT_HD inline std::uint16_t noisy_intensity(const ResidualTable& table, const NoiseKeys& keys,
                                                  const Return& r, std::uint64_t ray,
                                                  std::uint16_t corrected) {
    const std::uint64_t key = rng::key(keys.scan, 0x696e74656e73);
    constexpr double kOffZero = 0x1.0p-54;  // where the quantile is infinite
    const double normal =
        std::sqrt(table.share) * normal_quantile(voxel_uniform(key, r.position, 2) + kOffZero) +
        std::sqrt(1 - table.share) * gaussian_of(key, ray, Purpose::learned);
    const float value = static_cast<float>(corrected) * kIntensityScale;
    return corrected_intensity(corrected, 1, residual_at(table, value, normal));
}

/// Sums over the window of a ray, cell by cell.
CITYSPLAT_HD inline WindowSums window_of(const LearnedView& view, WindowShape shape, std::int32_t row,
                                         std::int32_t column) {
    const auto rows = static_cast<std::int32_t>(view.grid.beams),
               columns = static_cast<std::int32_t>(view.grid.columns);
    WindowWords sum;
    for (std::int32_t c = column - shape.columns / 2; c <= column + shape.columns / 2; ++c) {
        if (!view.grid.wraps && (c < 0 || c >= columns)) continue;
        const std::int32_t at = (c % columns + columns) % columns;
        for (std::int32_t y = row - shape.beams / 2; y <= row + shape.beams / 2; ++y)
            if (y >= 0 && y < rows)
                sum += window_words(view.returns[static_cast<std::uint32_t>(at) * view.grid.beams +
                                                 view.grid.beam_of_row[y]]);
    }
    return unpack(sum);
}

/// What becomes of a return.
struct Outcome {
    std::uint16_t intensity;
    RayStatus status;
};

CITYSPLAT_HD inline Outcome outcome_of(const LearnedView& view, std::uint32_t row, std::uint32_t column) {
    const std::uint32_t ray = column * view.grid.beams + view.grid.beam_of_row[row];
    const Return& r = view.returns[ray];
    if (r.status != RayStatus::hit) return {r.intensity, r.status};
    const float mask = view.mask[column * view.grid.beams + row];
    if (mask >= kOwnCar) return {r.intensity, RayStatus::dropped};
    const auto y = static_cast<std::int32_t>(row), x = static_cast<std::int32_t>(column);
    float in[kInputs], f[kFeatures];
    put_inputs(r, mask, {window_of(view, kSmallWindow, y, x), window_of(view, kLargeWindow, y, x)}, view.norm,
               [&in](unsigned input, float value) { in[input] = value; });
    make_features(in, f);
    normalise(view.norm, f);
    const bool lost = is_lost(view, evaluate(view.drop, view.drop_bias + row * kHidden1, f), r, ray);
    std::uint16_t intensity = r.intensity;
    if (view.gain)
        intensity = corrected_intensity(r.intensity, view.gain[row],
                                        evaluate(view.intensity, view.intensity_bias + row * kHidden1, f));
    if (view.residuals) intensity = noisy_intensity(*view.residuals, view.keys, r, ray, intensity);
    return {intensity, lost ? RayStatus::dropped : RayStatus::hit};
}

}  // namespace citysplat::sim::learn
