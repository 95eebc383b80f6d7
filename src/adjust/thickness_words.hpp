#pragma once

#include "adjust/thickness.hpp"

#include <string>

namespace citysplat::adjust {

/// How thick surfaces are, as a JSON object: what a city keeps of it and what scripts are told (docs/cli.md).
/// Stored in catalogs; keys are added, never changed.
std::string thickness_words(const Thickness& thickness);

}  // namespace citysplat::adjust
