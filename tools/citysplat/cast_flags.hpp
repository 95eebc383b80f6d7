#pragma once

#include "citysplat/number_flags.hpp"
#include "core/number_range.hpp"
#include "sim/recorded/ray_caster.hpp"
#include "trace/hit_hd.hpp"

namespace citysplat::cli {

/// How real rays are cast again: the flags that compare, learn-sensor and calibrate share.
inline void add_cast_flags(CLI::App& verb, sim::CastOptions& cast) {
    verb.add_option("--hits", cast.hits, "average up to D hits of one surface, as simulate does")
        ->check(whole_from(1, static_cast<int>(trace::kMaxHits)))
        ->capture_default_str()
        ->type_name("D");
    verb.add_option("--gap", cast.gap_m, "greatest distance between hits of one surface")
        ->check(in_range(ranges::kGap_m))
        ->capture_default_str()
        ->type_name("M");
}

}  // namespace citysplat::cli
