#pragma once

#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/generations/product_flag.hpp"
#include "citysplat/places/region_flags.hpp"
#include "model/tile_source.hpp"
#include "sim/drive/prepared_traffic.hpp"

#include <memory>
#include <span>
#include <string>

namespace citysplat::cli {

class Context;

/// A city as the flags name it; no name: none.
struct NamedCity {
    std::string name;
    GenerationFlag generation;
    ProductFlag product{};
    RegionFlags region{};  ///< what is outside does not exist
};

/// The city, or none where its name is empty and the scenario has things of its own. Throws UsageError when
/// there is neither.
std::shared_ptr<const TileSource> open_scene(const NamedCity& city, const sim::Scenario& scenario);

/// What stands and moves in a scenario around these ways. Says what was left out or assumed.
sim::PreparedTraffic traffic_of(const sim::Scenario& scenario, std::span<const sim::SensorWay> ways,
                                trace::ResidentCity& city, Context& context);

}  // namespace citysplat::cli
