#include "citysplat/generations/product_flag.hpp"

#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/product_kinds.hpp"

#include <CLI/CLI.hpp>

namespace citysplat::cli {

void ProductFlag::add_to(CLI::App& verb) {
    verb.add_option(
            "--product", name_,
            "which of the city's products: splats, mesh or imls (default: the first of these that it has)")
        ->check(CLI::IsMember(kProductKinds.all()))
        ->type_name("KIND");
}

ProductKind ProductFlag::kind(const std::string& city, std::optional<std::int64_t> generation) const {
    if (const auto kind = kProductKinds.value(name_)) return *kind;
    // What is wrong with a city is said when it is opened.
    const tiling::CityPaths paths(city);
    if (!paths.is_city()) return ProductKind::splats;
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const auto row = generation ? catalog.generation(*generation) : catalog.latest();
    return row ? tiling::kinds_of(*row).front().kind : ProductKind::splats;
}

}  // namespace citysplat::cli
