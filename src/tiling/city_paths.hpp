#pragma once

#include "core/hash.hpp"

#include <filesystem>

namespace citysplat::tiling {

/// The one place that knows how a city is laid out in its directory. Objects are named by hash only: nothing
/// read from the catalog ever becomes part of a path.
///
///   catalog.sqlite     what exists, from what, in which generation
///   objects/ab/<hash>  immutable, content-addressed: point archives and splat payloads
///   shards/            what `build --shard` made and `publish` has not yet taken
///   tmp/               being written; emptied by the next builder
///   lock               byte 0: the builder; byte g: readers of generation g (city_lock.hpp)
class CityPaths {
  public:
    explicit CityPaths(std::filesystem::path root) : root_(std::move(root)) {}

    const std::filesystem::path& root() const { return root_; }
    std::filesystem::path catalog() const { return root_ / "catalog.sqlite"; }
    std::filesystem::path lock() const { return root_ / "lock"; }
    std::filesystem::path objects() const { return root_ / "objects"; }
    std::filesystem::path shards() const { return root_ / "shards"; }
    std::filesystem::path temporary() const { return root_ / "tmp"; }
    std::filesystem::path object_directory(const Hash128& hash) const {
        return objects() / hash.hex().substr(0, 2);
    }
    std::filesystem::path object(const Hash128& hash) const { return object_directory(hash) / hash.hex(); }

    bool is_city() const { return std::filesystem::exists(catalog()); }

  private:
    std::filesystem::path root_;
};

}  // namespace citysplat::tiling
