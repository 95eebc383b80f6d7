#include "tiling/points/open_objects.hpp"

#include <algorithm>

namespace citysplat::tiling {

OpenObjects::OpenObjects(const ObjectStore& store, std::string what, std::size_t most_open)
    : store_(store), what_(std::move(what)), most_open_(std::max<std::size_t>(1, most_open)) {}

std::shared_ptr<const File> OpenObjects::open(const Hash128& hash) {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
        by_use_.splice(by_use_.begin(), by_use_, found->second);
        return by_use_.front().file;
    }
    if (by_use_.size() == most_open_) {
        by_hash_.erase(by_use_.back().hash);
        by_use_.pop_back();
    }
    by_use_.push_front({hash, std::make_shared<const File>(store_.open(hash, what_))});
    by_hash_.emplace(hash, by_use_.begin());
    return by_use_.front().file;
}

}  // namespace citysplat::tiling
