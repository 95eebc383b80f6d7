#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstdint>
#include <map>
#include <span>

namespace citysplat::diff {

/// Splats that only one of two generations has. A splat that both have cancels: it is the same bit for bit in
/// world terms, whichever tile holds it.
struct SplatCounts {
    std::uint64_t before = 0, after = 0;  ///< in tiles that differ
    std::uint64_t gone = 0, added = 0;
};
struct SplatDiff {
    SplatCounts all;
    std::map<std::uint16_t, SplatCounts> classes;
    std::map<TileKey, SplatCounts> tiles;
};

/// Only tiles whose digests differ are read. Holds 24 bytes for each splat of them, or reads them several
/// times when that is more than the budget.
SplatDiff compare_splats(const tiling::ObjectStore& store, std::span<const tiling::ProductRow> before,
                         std::span<const tiling::ProductRow> after, std::uint64_t budget_bytes,
                         const CancelToken& cancel);

}  // namespace citysplat::diff
