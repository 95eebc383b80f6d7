#pragma once

#include "mesh/city_processor.hpp"
#include "mesh/imls_field.hpp"
#include "mesh/mesh_params.hpp"
#include "model/tile_grid.hpp"
#include "splat/recipe.hpp"
#include "splat/splat_processor.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::mesh {

/// What determines the products of a city, besides its points. A city remembers it.
struct CityRecipe {
    splat::Recipe splats;  ///< its class map and carving are those of all products
    std::vector<ProductKind> products{ProductKind::splats};  ///< sorted, each once
    MeshParams mesh;
    ImlsParams imls;

    bool makes(ProductKind kind) const;
    /// Whether one of its products are triangles.
    bool makes_triangles() const;
    /// Calls visit(kind, parameters) for each product of triangles that there could be.
    template <class Self, class Visit>
    static void for_each_mesh(Self& recipe, const Visit& visit) {
        visit(ProductKind::mesh, recipe.mesh);
        visit(ProductKind::imls, recipe.imls);
    }
    /// For tiling::BuildOptions::parameters: what a later build needs to know, as JSON.
    std::string text() const;
};

/// What a build asks for; nothing where the city's own recipe shall stay.
struct CityRecipeChanges {
    splat::RecipeChanges splats;
    std::string products;           ///< words of ProductKind with commas between them
    std::optional<double> voxel_m;  ///< of all its meshes
    /// Other parameters of meshes: "name=value" for all that have it, "imls.name=value" for one.
    std::vector<std::string> mesh;
};

/// What this generation was made by, or is to be. `where` is for messages.
CityRecipe city_recipe_of(const tiling::GenerationRow& generation, const std::string& where);

/// The recipe of the city's latest generation, or that of a new city, with the changes. Throws UsageError
/// when they do not go together.
CityRecipe city_recipe_for(const std::filesystem::path& city, const CityRecipeChanges& changes);

std::unique_ptr<CityProcessor> make_processor(const CityRecipe& recipe);
/// The part that makes splats; nullptr when there is none.
const splat::SplatProcessor* splats_of(const CityProcessor& processor);

}  // namespace citysplat::mesh
