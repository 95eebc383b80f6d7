#include "citysplat/places/region_flags.hpp"

#include "citysplat/generations/text_flags.hpp"
#include "citysplat/number_flags.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/crs/crs.hpp"
#include "io/input/region_file.hpp"
#include "model/region/region_source.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

namespace citysplat::cli {

namespace {

LatticeBox box_from(const std::vector<double>& v) {
    const auto steps = [](double metres) { return to_lattice(metres); };
    return {steps(v[0]), steps(v[1]), steps(v[2]), steps(v[3])};
}

}  // namespace

TileKey tile_key_from(const std::string& text) {
    std::array<std::int32_t, 3> numbers{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t end = i < 2 ? text.find('/', at) : text.size();
        const auto number = end == std::string::npos
                                ? std::nullopt
                                : parse_whole<std::int32_t>(std::string_view(text).substr(at, end - at));
        if (!number || (i == 0 && (*number < 0 || *number > TileGrid::kMaxLevel)))
            throw UsageError("\"" + text + "\" is not a tile: level/x/y, as diff and status write them");
        numbers[i] = *number;
        at = end + 1;
    }
    return {numbers[0], numbers[1], numbers[2]};
}

std::string file_name_of(const TileKey& key) {
    return std::to_string(key.level) + "_" + std::to_string(key.ix) + "_" + std::to_string(key.iy);
}

void RegionFlags::add_to(CLI::App& verb, const std::string& what) {
    verb.add_option("--bounds", bounds_,
                    "only " + what +
                        " in this box: min x, min y, max x, max y in metres of the city's coordinate system")
        ->delimiter(',')
        ->expected(4)
        ->check(in_range(ranges::kPosition_m));
    CLI::Option* polygon = verb.add_option("--polygon", polygon_,
                                           "only " + what + " in the polygons of this GeoJSON or WKT file")
                               ->check(not_empty())
                               ->type_name("FILE");
    verb.add_option("--polygon-crs", polygon_crs_,
                    "coordinate system of that file, e.g. EPSG:4326 (default: what it says, else the city's)")
        ->check(not_empty())
        ->needs(polygon);
    verb.add_option("--tiles", tiles_,
                    "only " + what + " in these tiles: level/x/y, with commas between them")
        ->delimiter(',')
        ->check(not_empty());
}

std::string RegionFlags::text() const {
    std::string all;
    for (const auto& [given, name] : {std::pair{!bounds_.empty(), "--bounds"},
                                      {!polygon_.empty(), "--polygon"},
                                      {!tiles_.empty(), "--tiles"}})
        if (given) all += (all.empty() ? "" : ", ") + std::string(name);
    return all;
}

Region RegionFlags::shape(const TileSource& city) const {
    Region region;
    if (!bounds_.empty()) {
        const LatticeBox box = box_from(bounds_);
        if (box.min_x >= box.max_x || box.min_y >= box.max_y)
            throw UsageError("--bounds: nothing lies between " + format_number(bounds_[0]) + "," +
                             format_number(bounds_[1]) + " and " + format_number(bounds_[2]) + "," +
                             format_number(bounds_[3]) + "; the order is min x, min y, max x, max y");
        region.keep(box);
    }
    if (!polygon_.empty()) {
        io::RegionFile file = io::read_region(polygon_);
        if (!polygon_crs_.empty()) file.crs = io::crs_from_text(polygon_crs_).text;
        if (!file.crs.empty() && city.crs().empty())
            throw UsageError(polygon_.string() + " is in " + file.crs +
                             ", and nobody knows the coordinate system of the city; leave it out of the file "
                             "(and --polygon-crs) where both are the same");
        io::convert_region(file, city.crs(), polygon_);
        region.keep_any(file.polygons);
    }
    return region;
}

std::vector<TileKey> RegionFlags::keys(const TileSource& city) const {
    std::vector<TileKey> keys;
    for (const std::string& text : tiles_) {
        const TileKey key = tile_key_from(text);
        bool there = false;
        for (const TileEntry& entry : city.tiles()) {
            there |= is_part_of(entry.key, key);
            if (entry.key.level < key.level && is_part_of(key, entry.key))
                throw UsageError("--tiles " + text + ": the city has it as part of " + entry.key.text());
        }
        if (!there) throw UsageError("--tiles " + text + ": the city has no such tile with splats");
        keys.push_back(key);
    }
    return keys;
}

Region RegionFlags::region(const TileSource& city, std::optional<std::int64_t> tile_size_m) const {
    Region region = shape(city);
    if (tiles_.empty()) return region;
    if (!tile_size_m) throw UsageError("--tiles needs a city");
    const TileGrid grid(static_cast<double>(*tile_size_m));
    std::vector<LatticeBox> boxes;
    for (const TileKey& key : keys(city)) boxes.push_back(grid.core(key));
    region.keep_any(std::move(boxes));
    return region;
}

std::shared_ptr<const TileSource> RegionFlags::cut(std::shared_ptr<const TileSource> city) const {
    if (!given()) return city;
    Region region = shape(*city);
    const std::vector<TileKey> tiles = keys(*city);
    return std::make_shared<RegionSource>(std::move(city), std::move(region), tiles, text());
}

}  // namespace citysplat::cli
