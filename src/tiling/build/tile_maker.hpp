#pragma once

#include "core/cancel.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/build/memory_scheduler.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"
#include "tiling/tile_processor.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace citysplat::tiling {

/// The key of a tile: hash of everything its product is made from and of the tile itself. The same square of
/// two grids has two names, and a product carries its name.
Hash128 tile_key_hash(const TileKey& tile, const Region& region, const Hash128& parameters);

struct MadeTile {
    enum class How { empty, reused, built };
    How how = How::empty;
    Reason reason = Reason::new_tile;
    ProductRow product;  ///< unless empty
    bool widened = false;
};

/// Makes single tiles: reads the points, compares keys, runs the processor, widens the halo until the tile is
/// certified, writes the payload. Safe to call from several threads.
class TileMaker {
  public:
    struct Context {
        const TileGrid& grid;
        const RegionReader& points;
        const TileProcessor& processor;
        ObjectStore& store;
        const CancelToken& cancel;
        /// What earlier builds made, by key.
        const std::map<Hash128, ProductRow>& memo;
    };
    explicit TileMaker(const Context& context);

    /// The product's payload is written but not yet durable: flush the store before its row is stored.
    MadeTile make(const PlannedTile& tile, MemoryScheduler::Grant& grant) const;

  private:
    struct Keyed {
        Region region;
        Hash128 key, core;
        std::uint64_t core_points = 0, removed = 0;
    };
    Keyed read(const TileKey& tile, std::int64_t halo_steps) const;
    /// What an earlier build made of the same points, when it is still there and whole.
    const ProductRow* find(const TileKey& tile, const Keyed& keyed) const;
    ProductRow write(const TileKey& tile, const Keyed& keyed, std::int64_t halo_steps,
                     const TileOutput& output) const;

    Context c_;
    std::map<ProductKind, Hash128> parameters_;
};

}  // namespace citysplat::tiling
