#pragma once

#include "sim/learn/network_hd.hpp"
#include "sim/learn/scan_grid.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::sim::learn {

/// A network and the biases of its first layer, 16 for each beam.
struct BeamNetwork {
    Network network{};
    std::vector<float> bias;  ///< by beam × 16
};

/// Where the own car stands in the sensor's view: how often a ray that meets something in the model comes
/// back without return.
struct OwnCarMask {
    double below_deg = -8;           ///< beams above this elevation are not hidden
    std::vector<float> probability;  ///< by beam × kMaskCells
};

/// Shares of the noise that rays have in common: in half a metre during a scan, in a metre for ever.
struct NoiseShares {
    double scan = 0, place = 0;
};

/// How bright a surface looks to each beam: recorded intensity × gain + network.
struct IntensityCorrection {
    std::vector<float> gain;  ///< by beam
    BeamNetwork net;
    std::optional<ResidualTable> residuals;  ///< files of version 1 have none

    /// What leaves intensities as they are.
    static IntensityCorrection none(std::uint32_t beams);
    bool corrects() const;  ///< false: none()
};

/// How well a model did on scans that it was not trained on.
struct DropMetrics {
    std::uint64_t rays = 0;                ///< that met something, outside the mask
    double constant_loss = 0;              ///< log-loss of always saying the share of the training rays
    double log_loss = 0;                   ///< outside the mask
    double auc = 0, brier = 0;             ///< outside the mask
    double calibration_error = 0;          ///< mean of |said − seen| over tenths of the probability
    double empty_percent = 0;              ///< of real-empty rays that come back empty, with the mask
    double wrong_percent = 0;              ///< of real returns that are lost, with the mask
    double count_percent = 0;              ///< mean error of the returns of a scan, with the mask
    double left_real = 0, left_model = 0;  ///< how often the ray before a lost one is lost, too
    double intensity_rmse = 0, recorded_rmse = 0;
};

/// Calls f(name, value) for each of them but `rays`; files and reports have these names.
template <class Metrics, class F>
void for_each_metric(Metrics& m, const F& f) {
    f("constant_loss", m.constant_loss);
    f("log_loss", m.log_loss);
    f("auc", m.auc);
    f("brier", m.brier);
    f("calibration_error", m.calibration_error);
    f("empty_percent", m.empty_percent);
    f("wrong_percent", m.wrong_percent);
    f("count_percent", m.count_percent);
    f("left_real", m.left_real);
    f("left_model", m.left_model);
    f("intensity_rmse", m.intensity_rmse);
    f("recorded_rmse", m.recorded_rmse);
}

/// What `learn-sensor` found out about one sensor on one vehicle; a text file (docs/formats.md).
struct SensorModel {
    std::string sensor;  ///< Sensor::id
    std::uint32_t beams = 0;
    std::string training_digest;  ///< of the rays it was trained on
    std::uint64_t training_rays = 0;
    Normalisation norm{};
    OwnCarMask mask;
    BeamNetwork drop;
    NoiseShares noise;
    /// Where as many rays of the training have a greater score as were lost; files before version 3 lack it.
    std::optional<float> likely_above;
    /// Entry k: the score that a share of k · kLostStep of the returns of the training exceed, own car
    /// included; descending. Empty in files before version 4.
    std::vector<float> lost_above;
    std::optional<IntensityCorrection> intensity;
    DropMetrics metrics;

    static constexpr std::size_t kLostSteps = 41;
    static constexpr double kLostStep = 0.0025;
    /// The score above which that share of the real returns lies. Requires lost_above and a share that is in
    /// it.
    float lost_above_of(double share) const;

    /// Throws ConfigError unless the sensor is one that this model can be used with.
    void check(const Sensor& sensor, std::string_view origin) const;

    /// The text of its file; the same bytes for the same model.
    std::string text() const;
    /// Throws CorruptionError when the checksum does not fit, ConfigError naming `origin` and the key for
    /// anything else that is wrong.
    static SensorModel parse(std::string_view text, std::string_view origin);
    static SensorModel load(const std::filesystem::path& path);
};

}  // namespace citysplat::sim::learn
