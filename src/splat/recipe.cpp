#include "splat/recipe.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "splat/params/params_text.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::splat {

namespace {

using nlohmann::json;

/// From Recipe::text(), without the classes.
Recipe recipe_from(const std::string& text, const std::string& where) {
    try {
        const json before = json::parse(text);
        Recipe recipe;
        SplatParams& params = recipe.params;
        params = SplatParams::of(method_from(before.value("method", "adaptive")).value_or(Method::adaptive));
        params.resample = before.value("resample", true);
        change_params(params, before.value("changes", ""), where);
        recipe.carve = before.value("carve", false);  // version 0.1 did not, and did not say so
        return recipe;
    } catch (const json::exception&) {
        throw CorruptionError(where + ": the parameters of the city are damaged");
    }
}

void change_method(SplatParams& params, Method method) {
    const bool resample = params.resample;
    params = SplatParams::of(method);
    params.resample = resample;
}

void change_numbers(SplatParams& params, const std::string& name) {
    if (name == "default")
        params = SplatParams::of(params.method);
    else if (name == "paper")
        params = SplatParams::paper(params.method);
    else
        change_params(params, read_text_file(name), name);
}

}  // namespace

std::string Recipe::text() const {
    json object{{"method", std::string(to_string(params.method))},
                {"resample", params.resample},
                {"classes", classes.name()},
                {"carve", carve}};
    SplatParams same = params;
    same.resample = SplatParams::of(params.method).resample;
    if (const std::string changes = params_changes(same); !changes.empty()) object["changes"] = changes;
    return object.dump();
}

Recipe recipe_of(const tiling::GenerationRow& generation, const std::string& where) {
    Recipe recipe = recipe_from(generation.parameters, where);
    if (!generation.classes.empty()) recipe.classes = ClassMap::parse(generation.classes, where);
    return recipe;
}

std::optional<Recipe> remembered_recipe(const std::filesystem::path& city,
                                        std::optional<std::int64_t> generation) {
    const tiling::CityPaths paths(city);
    if (!paths.is_city()) return std::nullopt;
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const auto row = generation ? catalog.generation(*generation) : catalog.latest();
    if (!row) return std::nullopt;
    return recipe_of(*row, paths.catalog().string());
}

Recipe recipe_for(const std::filesystem::path& city, const RecipeChanges& changes) {
    const auto before = remembered_recipe(city);
    Recipe recipe = before.value_or(Recipe{});
    if (!changes.classes.empty()) recipe.classes = ClassMap::load(changes.classes);
    const bool no_classes = recipe.classes.classes().empty();
    if (changes.method || !before)
        change_method(recipe.params,
                      changes.method.value_or(no_classes ? Method::descriptors : Method::adaptive));
    if (recipe.params.method == Method::adaptive && no_classes)
        throw UsageError(
            "--method adaptive sorts points by their class: give the map of the data set with --classes, "
            "or use --method descriptors for clouds without labels");
    if (!changes.params.empty()) change_numbers(recipe.params, changes.params);
    if (changes.resample) recipe.params.resample = *changes.resample;
    if (changes.carve) recipe.carve = *changes.carve;
    return recipe;
}

}  // namespace citysplat::splat
