#pragma once

#include "diff/surface_diff.hpp"
#include "tiling/store/city_reader.hpp"

#include <cstdint>
#include <string>

namespace citysplat::cli {

class Context;

/// The generation before another one. Throws UsageError when there is none.
std::int64_t generation_before(tiling::Catalog& catalog, std::int64_t generation);

/// Two generations of a city, both pinned.
struct TwoGenerations {
    std::string city;
    const tiling::CityReader &from, &to;
};

/// What surfaces the inputs that the later one has and the earlier one has not saw changed. Classes that move
/// are left out of it.
diff::SurfaceDiff surfaces_between(Context& context, tiling::Catalog& catalog, const TwoGenerations& two,
                                   diff::SurfaceDiffOptions options);

}  // namespace citysplat::cli
