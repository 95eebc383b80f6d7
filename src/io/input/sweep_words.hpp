#pragma once

#include "model/sensor_mask.hpp"
#include "model/sweep.hpp"

#include <nlohmann/json_fwd.hpp>

/// A sweep and a mask as words of a reading. Numbers are written so that they come back as they were.
namespace citysplat::io {

nlohmann::json to_words(const Sweep& sweep);
Sweep sweep_from(const nlohmann::json& words);

/// Only what is not the default.
nlohmann::json to_words(const SensorMask& mask);
SensorMask mask_from(const nlohmann::json& words);

}  // namespace citysplat::io
