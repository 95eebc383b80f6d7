#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "sim/learn/learning_set.hpp"
#include "sim/learn/sensor_model.hpp"

namespace citysplat::sim::learn {

struct LearnOptions {
    double mask_below_deg = -8;  ///< the own car is looked for below this elevation
    double train_share = 0.7;    ///< of the scans, the first ones; after a gap the rest judges
    double effort = 1;           ///< scales how long the networks are trained
};

/// Learns own-car mask, ray drop and intensity of a sensor from the first scans, and judges the result on the
/// last ones. The same set gives the same bytes, on any machine and any number of threads. Throws InputError
/// when there are fewer than kLeastScans scans, or none of their rays was lost or none came back.
SensorModel learn_sensor(const LearningSet& set, const Sensor& sensor, const LearnOptions& options,
                         const CancelToken& cancel, Progress& progress);

inline constexpr std::size_t kLeastScans = 4;

}  // namespace citysplat::sim::learn
