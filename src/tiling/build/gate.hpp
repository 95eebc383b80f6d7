#pragma once

#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What may keep a generation from being published although all of it was made. Whoever is held back loses
/// nothing: the tiles are kept, and the city is as it was.
namespace citysplat::tiling {

/// Why a generation with these findings (TileProcessor::findings) must not be published, in words; nothing
/// when it may be.
using Gate = std::function<std::optional<std::string>(const std::string& findings)>;

/// A generation that is about to be published, and the one before it.
struct Candidate {
    const ObjectStore& store;
    const GenerationRow& before;
    std::vector<ProductRow> tiles_before;  ///< sorted by tile
    const GenerationRow& next;
    std::vector<ProductRow> tiles;        ///< sorted by tile
    std::vector<CitySource> new_sources;  ///< what it is made of that the one before was not
    std::uint64_t tiles_failed = 0;       ///< of which it keeps the old ones
};

/// What a gate measured. An objection holds the generation back.
struct GateResult {
    std::string gate;  ///< its name, for reports: never changes
    double value = 0, most = 0;
    std::string text;  ///< what was measured, in words
    bool holds() const { return value > most; }
};
using CandidateGate = std::function<GateResult(const Candidate&)>;

/// Share of tiles that are new, gone or have other splats, of all tiles of the larger generation.
CandidateGate changed_tiles_gate(double most_share);
/// How many splats more or less there are, as a share of those before.
CandidateGate splat_change_gate(double most_share);
/// Tiles that could not be made.
CandidateGate failed_tiles_gate(std::uint64_t most);

/// What is asked before a generation is published.
struct Gates {
    Gate findings;
    std::vector<CandidateGate> others;
};

/// The sources that `sources` has and `before` has not, by identity.
std::vector<CitySource> sources_added(const std::vector<CitySource>& before,
                                      const std::vector<CitySource>& sources);

/// How many tiles differ between two generations, by what is in them. Both sorted by tile.
struct TileChanges {
    std::uint64_t added = 0, changed = 0, removed = 0, same = 0;
    std::uint64_t differing() const { return added + changed + removed; }
};
TileChanges changes_between(std::span<const ProductRow> before, std::span<const ProductRow> after);

}  // namespace citysplat::tiling
