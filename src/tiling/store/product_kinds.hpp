#pragma once

#include "core/error.hpp"
#include "core/hash.hpp"
#include "model/tile_grid.hpp"
#include "tiling/store/catalog.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::tiling {

/// A kind of product that a generation has, and the key of the parameters it was made with.
struct KindKey {
    ProductKind kind;
    Hash128 parameters_key;
    friend bool operator==(const KindKey&, const KindKey&) = default;
};

/// GenerationRow::products of these kinds, sorted: "splats:<hash>,mesh:<hash>"; empty for splats alone.
inline std::string products_text(const std::vector<KindKey>& kinds) {
    if (kinds.size() == 1 && kinds[0].kind == ProductKind::splats) return {};
    std::string text;
    for (const auto& [kind, key] : kinds)
        text += (text.empty() ? "" : ",") + std::string(kProductKinds.of(kind)) + ":" + key.hex();
    return text;
}

/// What a generation says it has. Throws CorruptionError when its words are damaged.
inline std::vector<KindKey> kinds_of(const GenerationRow& generation) {
    if (generation.products.empty()) return {{ProductKind::splats, generation.parameters_key}};
    std::vector<KindKey> kinds;
    std::istringstream words(generation.products);
    for (std::string word; std::getline(words, word, ',');) {
        const std::size_t colon = word.find(':');
        const auto kind = kProductKinds.value(word.substr(0, colon));
        const auto key =
            colon == std::string::npos ? std::nullopt : Hash128::from_hex(word.substr(colon + 1));
        if (!kind || !key || (!kinds.empty() && kinds.back().kind >= *kind))
            throw CorruptionError("generation " + std::to_string(generation.id) + " says it has \"" +
                                  generation.products +
                                  "\", which are no products; citysplat repair rebuilds the catalog");
        kinds.push_back({*kind, *key});
    }
    return kinds;
}

/// "splats,mesh"
inline std::string words_of(const std::vector<KindKey>& kinds) {
    std::string words;
    for (const KindKey& kind : kinds)
        words += (words.empty() ? "" : ",") + std::string(kProductKinds.of(kind.kind));
    return words;
}

inline bool has_kind(const GenerationRow& generation, ProductKind kind) {
    const auto kinds = kinds_of(generation);
    return std::any_of(kinds.begin(), kinds.end(), [kind](const KindKey& k) { return k.kind == kind; });
}

/// Tiles of one kind.
inline std::vector<ProductRow> of_kind(std::vector<ProductRow> tiles, ProductKind kind) {
    std::erase_if(tiles, [kind](const ProductRow& tile) { return tile.tile.kind != kind; });
    return tiles;
}

}  // namespace citysplat::tiling
