#pragma once

#include "model/class_map.hpp"
#include "splat/params/splat_params.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace citysplat::tiling {
struct GenerationRow;
}

namespace citysplat::splat {

/// What determines the splats of a city, besides its points. A city remembers it, so that a nightly build
/// needs not be told again.
struct Recipe {
    SplatParams params;
    ClassMap classes;
    bool carve = true;  ///< leave out what rays saw through; cities of version 0.1 do not

    /// For tiling::BuildOptions::parameters: what a later build needs to know, as JSON.
    std::string text() const;
};

/// What a build asks for; nothing where the city's own recipe shall stay.
struct RecipeChanges {
    std::optional<Method> method;
    std::string classes;  ///< name or file of a class map
    std::string params;   ///< a TOML file, or `default` or `paper` for the method's own numbers
    std::optional<bool> resample;
    std::optional<bool> carve;
};

/// What this generation was made by, or is to be. `where` is for messages.
Recipe recipe_of(const tiling::GenerationRow& generation, const std::string& where);

/// What the latest generation of a city was made by; nothing for a directory without one.
std::optional<Recipe> remembered_recipe(const std::filesystem::path& city,
                                        std::optional<std::int64_t> generation = {});

/// The recipe of the city's latest generation, or that of a new city, with the changes. Throws UsageError
/// when they do not go together.
Recipe recipe_for(const std::filesystem::path& city, const RecipeChanges& changes);

}  // namespace citysplat::splat
