#pragma once

#include "core/math/host_device.hpp"
#include "sim/learn/window_hd.hpp"

#include <cmath>
#include <cstdint>

/// What a learned model knows about a ray that met something. Only + − × ÷, sqrt, min and max in float, each
/// rounded: the same bits for one ray at a time, for vectors of rays and on a GPU.
namespace citysplat::sim::learn {

/// The features in the order of their weights. Files of models carry these names; they never change.
enum Feature : unsigned {
    kRange,      ///< metres / 64
    kRootRange,  ///< √ metres
    kNearness,   ///< 8 / (8 + metres)
    kIntensity,  ///< 0 … 1
    kRootIntensity,
    kDark,  ///< 1: intensity zero
    kCosine,
    kSine,               ///< of the incidence angle
    kRecordedRange,      ///< of the splat's points, metres / 64
    kRecordedIncidence,  ///< 1: 90°
    kSmallShare,         ///< hits among the rays of the small window
    kSmallStep,          ///< range minus the window's mean range, as a share of the range
    kSmallSpread,        ///< standard deviation of the window's ranges, as a share of the range
    kSmallIntensity,     ///< mean of the window's hits
    kLargeShare,
    kLargeStep,
    kLargeSpread,
    kLargeIntensity,
    kLargeDark,  ///< share of intensity zero among the hits of the large window
    kMask,       ///< how often the own car hides this place of the sensor's view
    kFeatures
};
inline constexpr const char* kFeatureNames[kFeatures] = {"range",          "root_range",
                                                         "nearness",       "intensity",
                                                         "root_intensity", "dark",
                                                         "cosine",         "sine",
                                                         "recorded_range", "recorded_incidence",
                                                         "small_share",    "small_step",
                                                         "small_spread",   "small_intensity",
                                                         "large_share",    "large_step",
                                                         "large_spread",   "large_intensity",
                                                         "large_dark",     "mask"};

/// What features are computed from: exact values, one conversion each. A plain list of floats, because
/// vectors of rays keep one array for each.
enum Input : unsigned {
    kInRange_m,
    kInIntensity,
    kInCosine,
    kInRecordedRange,
    kInRecordedIncidence,
    kInMask,
    kInSmallRays,
    kInSmallHits,
    kInSmallSteps,
    kInSmallScatter,
    kInSmallIntensity,
    kInLargeRays,
    kInLargeHits,
    kInLargeSteps,
    kInLargeScatter,
    kInLargeIntensity,
    kInLargeDark,
    kInputs
};

inline constexpr float kIntensityScale = 1.0f / 65535.0f, kRangeScale = 1.0f / 64.0f, kNear_m = 8.0f,
                       kLeastRange_m = 0.1f, kMostDeviation = 6.0f;

/// How features become inputs of a network: (value − mean) × scale, cut at ±kMostDeviation.
struct Normalisation {
    float mean[kFeatures];
    float scale[kFeatures];
};

struct Windows {
    WindowSums small, large;
};

/// `put(input, value)` receives every input of a ray that met something. What was not recorded is taken to be
/// the mean of the training rays.
template <class Put>
CITYSPLAT_HD inline void put_inputs(const Return& r, float mask, const Windows& windows,
                                    const Normalisation& norm, const Put& put) {
    put(kInRange_m, r.range_m);
    put(kInIntensity, static_cast<float>(r.intensity) * kIntensityScale);
    put(kInCosine, r.cosine);
    put(kInRecordedRange, r.recorded_range_m == kUnknownByte
                              ? norm.mean[kRecordedRange]
                              : static_cast<float>(r.recorded_range_m) * kRangeScale);
    put(kInRecordedIncidence, r.recorded_incidence == kUnknownByte
                                  ? norm.mean[kRecordedIncidence]
                                  : static_cast<float>(r.recorded_incidence) * (1.0f / 254.0f));
    put(kInMask, mask);
    const auto put_window = [&put](unsigned first, const WindowSums& w) {
        put(first, static_cast<float>(w.rays));
        put(first + 1, static_cast<float>(w.hits));
        put(first + 2, static_cast<float>(w.range_steps));
        put(first + 3, static_cast<float>(w.scatter()));
        put(first + 4, static_cast<float>(w.intensity));
    };
    put_window(kInSmallRays, windows.small);
    put_window(kInLargeRays, windows.large);
    put(kInLargeDark, static_cast<float>(windows.large.dark));
}

CITYSPLAT_HD inline float larger(float a, float b) { return a > b ? a : b; }
CITYSPLAT_HD inline float smaller(float a, float b) { return a < b ? a : b; }

/// The features of one ray. network_lanes.cpp does the same, operation by operation, for vectors of rays.
CITYSPLAT_HD inline void make_features(const float (&in)[kInputs], float (&f)[kFeatures]) {
    const float range = larger(in[kInRange_m], kLeastRange_m), per_range = 1.0f / range;
    f[kRange] = range * kRangeScale;
    f[kRootRange] = std::sqrt(range);
    f[kNearness] = kNear_m / (kNear_m + range);
    f[kIntensity] = in[kInIntensity];
    f[kRootIntensity] = std::sqrt(in[kInIntensity]);
    f[kDark] = in[kInIntensity] > 0 ? 0.0f : 1.0f;
    f[kCosine] = in[kInCosine];
    f[kSine] = std::sqrt(larger(1.0f - in[kInCosine] * in[kInCosine], 0.0f));
    f[kRecordedRange] = in[kInRecordedRange];
    f[kRecordedIncidence] = in[kInRecordedIncidence];
    const auto window = [&](unsigned input, unsigned feature) {
        const float per_hit = 1.0f / larger(in[input + 1], 1.0f);
        f[feature] = in[input + 1] / in[input];
        f[feature + 1] = 1.0f - in[input + 2] * per_hit * kRangeStep_m * per_range;
        f[feature + 2] = std::sqrt(in[input + 3]) * per_hit * kRangeStep_m * per_range;
        f[feature + 3] = in[input + 4] * per_hit * kIntensityScale;
        return per_hit;
    };
    window(kInSmallRays, kSmallShare);
    const float per_hit = window(kInLargeRays, kLargeShare);
    f[kLargeDark] = in[kInLargeDark] * per_hit;
    f[kMask] = in[kInMask];
}

CITYSPLAT_HD inline float normalised(const Normalisation& norm, unsigned feature, float value) {
    return larger(smaller((value - norm.mean[feature]) * norm.scale[feature], kMostDeviation),
                  -kMostDeviation);
}
CITYSPLAT_HD inline void normalise(const Normalisation& norm, float (&f)[kFeatures]) {
    for (unsigned j = 0; j < kFeatures; ++j) f[j] = normalised(norm, j, f[j]);
}

}  // namespace citysplat::sim::learn
