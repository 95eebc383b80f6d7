#include "mesh/city_recipe.hpp"

#include "core/error.hpp"
#include "mesh/mesh_processor.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_paths.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
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
template <class Params>
json changed_fields(const Params& params) {
    json usual = json::object(), words = json::object();
    const Params defaults;
    Params::for_each_field(defaults,
                           [&usual](const char* name, auto field, double, double) { usual[name] = field; });
    Params::for_each_field(params, [&](const char* name, auto field, double, double) {
        if (usual[name] != json(field)) words[name] = field;
    });
    return words;
}

/// What changed_fields() told.
template <class Params>
void take_fields(Params& params, const json& words) {
    Params::for_each_field(params, [&words](const char* name, auto& field, double, double) {
        field = words.value(name, field);
    });
}

template <class Params>
std::string names_of_fields(const Params& params) {
    std::string names;
    Params::for_each_field(params, [&names](const char* name, const auto&, double, double) {
        names += (names.empty() ? "" : ", ") + std::string(name);
    });
    return names;
}

/// Gives the field of that name the number in `text`; false when there is no such field. `what` is for the
/// message of the UsageError about a text that is none.
template <class Params>
bool change_field(Params& params, std::string_view wanted, std::string_view text, const std::string& what) {
    bool found = false;
    Params::for_each_field(params, [&](const char* name, auto& field, double, double) {
        if (wanted != name) return;
        found = true;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        using Field = std::decay_t<decltype(field)>;
        constexpr bool kWhole = !std::is_same_v<Field, double>;
        if (error != std::errc{} || end != text.data() + text.size() ||
            (kWhole && value != static_cast<double>(static_cast<int>(value))))
            throw UsageError(what + ": \"" + std::string(text) + "\" is no " +
                             (kWhole ? "whole number" : "number"));
        field = static_cast<Field>(value);
    });
    return found;
}

/// "name=value" or "product.name=value".
void change_meshes(CityRecipe& recipe, const std::string& change) {
    const std::size_t equals = change.find('=');
    const std::string text = equals == std::string::npos ? "" : change.substr(equals + 1);
    const std::string what = "--mesh-param " + change;
    std::string names;
    bool found = false;
    CityRecipe::for_each_mesh(recipe, [&](ProductKind kind, auto& params) {
        if (!recipe.makes(kind)) return;
        const std::string product = kProductKinds.of(kind);
        std::string wanted = change.substr(0, equals);
        if (wanted.starts_with(product + ".")) wanted.erase(0, product.size() + 1);
        found = change_field(params, wanted, text, what) || found;
        names += "; " + product + " has " + names_of_fields(params);
    });
    if (!found) throw UsageError(what + ": there is no such parameter" + names);
}

void check_meshes(const CityRecipe& recipe) {
    CityRecipe::for_each_mesh(recipe, [](ProductKind, const auto& params) { params.validate(); });
}

}  // namespace

bool CityRecipe::makes(ProductKind kind) const {
    return std::find(products.begin(), products.end(), kind) != products.end();
}

bool CityRecipe::makes_triangles() const {
    return std::any_of(products.begin(), products.end(), has_triangles);
}

std::string CityRecipe::text() const {
    if (products == std::vector{ProductKind::splats}) return splats.text();
    json words = json::parse(splats.text());
    std::string names;
    for (const ProductKind kind : products)
        names += (names.empty() ? "" : ",") + std::string(kProductKinds.of(kind));
    words["products"] = names;
    for_each_mesh(*this, [&](ProductKind kind, const auto& params) {
        if (makes(kind)) words[kProductKinds.of(kind)] = changed_fields(params);
    });
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
        CityRecipe::for_each_mesh(recipe, [&words](ProductKind kind, auto& params) {
            take_fields(params, words.value(kProductKinds.of(kind), json::object()));
        });
    } catch (const json::exception&) {
        throw CorruptionError(where + ": the parameters of the city are damaged");
    }
    check_meshes(recipe);
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
                             ": a city can have splats, mesh, imls, or several of them: splats,mesh");
        recipe.products = *products;
    }
    if ((changes.voxel_m || !changes.mesh.empty()) && !recipe.makes_triangles())
        throw UsageError(
            "--voxel and --mesh-param are about a mesh; add --product mesh or --product splats,mesh");
    CityRecipe::for_each_mesh(recipe, [&](ProductKind kind, auto& params) {
        if (changes.voxel_m && recipe.makes(kind)) params.voxel_m = *changes.voxel_m;
    });
    for (const std::string& change : changes.mesh) change_meshes(recipe, change);
    check_meshes(recipe);
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
            case ProductKind::imls:
                parts.push_back(std::make_unique<MeshProcessor>(recipe.imls, recipe.splats.classes));
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
