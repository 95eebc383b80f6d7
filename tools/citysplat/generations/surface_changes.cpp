#include "citysplat/generations/surface_changes.hpp"

#include "citysplat/context.hpp"
#include "core/error.hpp"
#include "tiling/build/gate.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/store/product_kinds.hpp"

namespace citysplat::cli {

std::int64_t generation_before(tiling::Catalog& catalog, std::int64_t generation) {
    std::int64_t found = 0;
    for (const auto& row : catalog.history())
        if (row.id < generation) found = row.id;
    if (found == 0)
        throw UsageError("there is no generation before " + std::to_string(generation) +
                         " to compare it with; citysplat status --history lists what is left");
    return found;
}

diff::SurfaceDiff surfaces_between(Context& context, tiling::Catalog& catalog, const TwoGenerations& two,
                                   diff::SurfaceDiffOptions options) {
    const tiling::ObjectStore store{tiling::CityPaths(two.city)};
    const auto old_id = two.from.generation().id, new_id = two.to.generation().id;
    const auto old_sources = tiling::sources_of(catalog, catalog.inputs(old_id));
    const auto new_sources =
        tiling::sources_added(old_sources, tiling::sources_of(catalog, catalog.inputs(new_id)));
    if (new_sources.empty())
        context.warn("generation " + std::to_string(new_id) + " has no input that generation " +
                     std::to_string(old_id) + " had not: no surface was seen again");
    for (const auto& [label, info] : two.to.classes().classes())
        if (info.dynamic) options.labels_left_out.push_back(label);
    return diff::compare_surfaces(
        store,
        {diff::Epoch{old_sources, tiling::of_kind(catalog.tiles(old_id), ProductKind::splats)},
         diff::Epoch{new_sources, tiling::of_kind(catalog.tiles(new_id), ProductKind::splats)}},
        options, context.cancel(), context.progress());
}

}  // namespace citysplat::cli
