#pragma once

#include "model/tile_source.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace citysplat::splat {

/// The last few tiles that were read: SplatTile or MeshTile.
template <class Tile>
class TileShelf {
  public:
    using Load = Tile (TileSource::*)(std::size_t) const;

    TileShelf(const TileSource& city, Load reader, std::uint64_t budget_bytes)
        : city_(city), load_(reader), budget_bytes_(budget_bytes) {}

    /// Throws what TileSource::load() throws.
    std::shared_ptr<const Tile> load(std::size_t tile) {
        {
            const std::lock_guard lock(mutex_);
            for (auto at = tiles_.begin(); at != tiles_.end(); ++at)
                if (at->first == tile) {
                    tiles_.splice(tiles_.begin(), tiles_, at);
                    return at->second;
                }
        }
        const auto loaded = std::make_shared<const Tile>((city_.*load_)(tile));
        const std::lock_guard lock(mutex_);
        tiles_.emplace_front(tile, loaded);
        used_bytes_ += loaded->bytes().size();
        while (used_bytes_ > budget_bytes_ && tiles_.size() > 1) {
            used_bytes_ -= tiles_.back().second->bytes().size();
            tiles_.pop_back();
        }
        return loaded;
    }

  private:
    const TileSource& city_;
    Load load_;
    std::uint64_t budget_bytes_, used_bytes_ = 0;
    std::mutex mutex_;
    std::list<std::pair<std::size_t, std::shared_ptr<const Tile>>> tiles_;  ///< last used first
};

}  // namespace citysplat::splat
