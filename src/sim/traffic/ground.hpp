#pragma once

#include "sim/traffic/traffic_plan.hpp"
#include "trace/hit_hd.hpp"
#include "trace/ray_disc_hd.hpp"

#include <functional>
#include <span>

namespace citysplat::sim {

/// Puts the first hit of each ray at the city, without anything that moves, into `hits`.
using CastAtCity = std::function<void(std::span<const trace::Ray> rays, std::span<trace::Hit> hits)>;

/// Stands the actors that asked for it on the scanned road: height, pitch and roll come from rays cast down
/// at four wheels, every metre of the way. A track without heights (all z are the same) is looked for from
/// below the city upwards, so that no tree or bridge above the road is taken for it; others from 2 m above
/// their own height down. Where the class map has classes of the ground, no other surface counts. Places
/// without ground take the heights of their neighbours; how many there are is noted. Yaw and way are not
/// changed.
void stand_on_city(TrafficPlan& plan, const ClassMap& classes, double lowest_m, double highest_m,
                   const CastAtCity& cast);

}  // namespace citysplat::sim
