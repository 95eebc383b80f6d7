#pragma once

#include "view/server/city_facts.hpp"
#include "view/server/exchange.hpp"

namespace citysplat::view {

/// For squares of 4 m on the ground: which input has most points there, and in which generation the tile was
/// made (docs/formats.md). Reads the tables of the point archives, but no point.
Response ground_response(const ShownCity& city);

}  // namespace citysplat::view
