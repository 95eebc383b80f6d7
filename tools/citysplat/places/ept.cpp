#include "citysplat/places/ept.hpp"

#include "citysplat/context.hpp"
#include "core/bytes.hpp"
#include "gis/ept_writer.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/product_kinds.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::cli {

void export_ept(Context& context, const std::string& city, std::optional<std::int64_t> generation,
                const std::string& out) {
    const Stopwatch watch;
    const tiling::CityReader reader(city, generation);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(city).catalog());
    gis::EptWish wish{reader, reader.generation().tile_size_m, {}};
    for (const tiling::ProductRow& tile :
         tiling::of_kind(catalog.tiles(reader.generation().id), ProductKind::splats))
        if (tile.splats > 0) wish.digests[tile.tile] = tile.digest;
    const gis::EptReport r = gis::write_ept(wish, out, context.cancel(), context.progress());
    const std::string what = !r.kept_some           ? "written"
                             : r.nodes_written == 0 ? "up to date"
                                                    : "brought up to date";
    context.result({{"files", {out + "/ept.json"}},
                    {"splats", r.points},
                    {"updated", r.kept_some},
                    {"nodes_written", r.nodes_written},
                    {"nodes_removed", r.nodes_removed},
                    {"sectors", r.sectors},
                    {"sectors_made", r.sectors_made},
                    {"seconds", watch.seconds()}},
                   out + ": " + what + ", " + format_count(r.points) + " splats, " +
                       format_count(r.nodes_written) + " nodes written, " + format_duration(watch.seconds()) +
                       "\n");
}

}  // namespace citysplat::cli
