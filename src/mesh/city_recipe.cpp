#include "mesh/city_recipe.hpp"

#include "core/error.hpp"
#include "mesh/mesh_processor.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <type_traits>

namespace citysplat::mesh {

namespace {

using nlohmann::json;

/// Nothing when a word is none, or there is none.
std::optional<std::vector<ProductKind>> products_from(const std::string& words) {
    std::vector<ProductKind> products;
    std::istringstream in(words);
    for (std::string word; std::getline(in, word, ',');) {
        const auto kind = kProductKinds.value(word);
        if (!kind) return std::nullopt;
        products.push_back(*kind);
    }
    std::sort(products.begin(), products.end());
    products.erase(std::unique(products.begin(), products.end()), products.end());
    if (products.empty()) return std::nullopt;
    return products;
}

/// The fields that differ from the defaults.
json mesh_words(const MeshParams& params) {
    json words = json::object();
    const json defaults = [] {
        json all = json::object();
        const MeshParams usual;
        MeshParams::for_each_field(usual,
                                   [&](const char* name, auto field, double, double) { all[name] = field; });
        return all;
    }();
    MeshParams::for_each_field(params, [&](const char* name, auto field, double, double) {
        if (defaults[name] != json(field)) words[name] = field;
    });
    return words;
}

MeshParams mesh_from(const json& words) {
    MeshParams params;
    MeshParams::for_each_field(params, [&words](const char* name, auto& field, double, double) {
        field = words.value(name, field);
    });
    return params;
}

/// "name=value"
void change_mesh(MeshParams& params, const std::string& change) {
    const std::size_t equals = change.find('=');
    const std::string wanted = change.substr(0, equals);
    const std::string text = equals == std::string::npos ? "" : change.substr(equals + 1);
    std::string names;
    bool found = false;
    MeshParams::for_each_field(params, [&](const char* name, auto& field, double, double) {
        names += (names.empty() ? "" : ", ") + std::string(name);
        if (wanted != name) return;
        found = true;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        using Field = std::decay_t<decltype(field)>;
        const bool fits =
            error == std::errc{} && end == text.data() + text.size() &&
            (std::is_same_v<Field, double> || value == static_cast<double>(static_cast<int>(value)));
        if (!fits)
            throw UsageError("--mesh-param " + change + ": \"" + text + "\" is no " +
                             (std::is_same_v<Field, double> ? "number" : "whole number"));
        field = static_cast<Field>(value);
    });
    if (!found)
        throw UsageError("--mesh-param " + change + ": there is no such parameter; there are " + names);
}

}  // namespace

bool CityRecipe::makes(ProductKind kind) const {
    return std::find(products.begin(), products.end(), kind) != products.end();
}

std::string CityRecipe::text() const {
    if (products == std::vector{ProductKind::splats}) return splats.text();
    json words = json::parse(splats.text());
    std::string names;
    for (const ProductKind kind : products)
        names += (names.empty() ? "" : ",") + std::string(kProductKinds.of(kind));
    words["products"] = names;
    if (makes(ProductKind::mesh)) words["mesh"] = mesh_words(mesh);
    return words.dump();
}

CityRecipe city_recipe_of(const tiling::GenerationRow& generation, const std::string& where) {
    CityRecipe recipe;
    recipe.splats = splat::recipe_of(generation, where);
    try {
        const json words = json::parse(generation.parameters);
        const auto products = products_from(words.value("products", "splats"));
        if (!products) throw CorruptionError(where + ": the products of the city are damaged");
        recipe.products = *products;
        recipe.mesh = mesh_from(words.value("mesh", json::object()));
    } catch (const json::exception&) {
        throw CorruptionError(where + ": the parameters of the city are damaged");
    }
    recipe.mesh.validate();
    return recipe;
}

CityRecipe city_recipe_for(const std::filesystem::path& city, const CityRecipeChanges& changes) {
    CityRecipe recipe;
    const tiling::CityPaths paths(city);
    if (paths.is_city())
        if (const auto latest = tiling::Catalog::open_to_read(paths.catalog()).latest())
            recipe = city_recipe_of(*latest, paths.catalog().string());
    recipe.splats = splat::recipe_for(city, changes.splats);
    if (!changes.products.empty()) {
        const auto products = products_from(changes.products);
        if (!products)
            throw UsageError("--product " + changes.products +
                             ": a city can have splats, mesh, or splats,mesh");
        recipe.products = *products;
    }
    if ((changes.voxel_m || !changes.mesh.empty()) && !recipe.makes(ProductKind::mesh))
        throw UsageError(
            "--voxel and --mesh-param are about a mesh; add --product mesh or --product splats,mesh");
    if (changes.voxel_m) recipe.mesh.voxel_m = *changes.voxel_m;
    for (const std::string& change : changes.mesh) change_mesh(recipe.mesh, change);
    recipe.mesh.validate();
    return recipe;
}

std::unique_ptr<CityProcessor> make_processor(const CityRecipe& recipe) {
    std::vector<std::unique_ptr<tiling::TileProcessor>> parts;
    for (const ProductKind kind : recipe.products) switch (kind) {
            case ProductKind::splats:
                parts.push_back(
                    std::make_unique<splat::SplatProcessor>(recipe.splats.params, recipe.splats.classes));
                break;
            case ProductKind::mesh:
                parts.push_back(std::make_unique<MeshProcessor>(recipe.mesh, recipe.splats.classes));
                break;
        }
    return std::make_unique<CityProcessor>(std::move(parts));
}

const splat::SplatProcessor* splats_of(const CityProcessor& processor) {
    for (const ProductKind kind : processor.kinds())
        if (kind == ProductKind::splats)
            return dynamic_cast<const splat::SplatProcessor*>(&processor.of(kind));
    return nullptr;
}

}  // namespace citysplat::mesh
