#pragma once

#include "splat/levels/level_cube.hpp"

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace citysplat::splat {

/// Cubes in memory under a budget. When it is full the finest go first, and among them those not used for
/// longest: a fine cube is made from one tile, a coarse one from thousands. Safe to use from several threads.
/// A cube has an `id` and `bytes()`.
template <class Cube>
class CubeCache {
  public:
    using CubePtr = std::shared_ptr<const Cube>;

    explicit CubeCache(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

    CubePtr find(const CubeId& id) {
        const std::lock_guard lock(mutex_);
        const auto found = places_.find(id);
        if (found == places_.end()) return nullptr;
        Recency& list = by_level_[id.level];
        list.splice(list.end(), list, found->second);
        return *found->second;
    }
    /// What is kept: the cube, or that which was there already. A cube larger than the budget is not kept.
    CubePtr keep(CubePtr cube) {
        const std::lock_guard lock(mutex_);
        if (const auto found = places_.find(cube->id); found != places_.end()) return *found->second;
        used_bytes_ += cube->bytes();
        Recency& list = by_level_[cube->id.level];
        places_[cube->id] = list.insert(list.end(), cube);
        while (used_bytes_ > budget_bytes_) {
            Recency& finest = std::find_if(by_level_.begin(), by_level_.end(), [](const auto& level) {
                                  return !level.second.empty();
                              })->second;
            used_bytes_ -= finest.front()->bytes();
            places_.erase(finest.front()->id);
            finest.pop_front();
        }
        return cube;
    }
    std::uint64_t used_bytes() const {
        const std::lock_guard lock(mutex_);
        return used_bytes_;
    }

  private:
    using Recency = std::list<CubePtr>;

    mutable std::mutex mutex_;
    std::uint64_t budget_bytes_, used_bytes_ = 0;
    std::map<CubeId, typename Recency::iterator> places_;
    std::map<int, Recency> by_level_;  ///< least recently used first
};

}  // namespace citysplat::splat
