#pragma once

#include "core/file.hpp"
#include "core/hash.hpp"
#include "tiling/store/object_store.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace citysplat::tiling {

/// Keeps the objects open that were asked for last, up to a number of files. Safe to use from several
/// threads.
///
/// A file that is pushed out while somebody reads it closes when he lets go of it: at most `most_open` files
/// and one per reading thread are open at any moment. Hold what open() returns for one read, not for longer.
class OpenObjects {
  public:
    /// `what` names the objects in messages, as in ObjectStore::open.
    OpenObjects(const ObjectStore& store, std::string what, std::size_t most_open);

    std::shared_ptr<const File> open(const Hash128& hash);

  private:
    struct Entry {
        Hash128 hash;
        std::shared_ptr<const File> file;
    };
    const ObjectStore& store_;
    const std::string what_;
    const std::size_t most_open_;
    std::mutex mutex_;
    std::list<Entry> by_use_;  ///< the last used first
    std::map<Hash128, std::list<Entry>::iterator> by_hash_;
};

}  // namespace citysplat::tiling
