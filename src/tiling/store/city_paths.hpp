#pragma once

#include "core/hash.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace citysplat::tiling {

/// The one place that knows how a city is laid out in its directory. Objects are named by hash only: nothing
/// read from the catalog ever becomes part of a path.
///
///   catalog.sqlite     what exists, from what, in which generation
///   objects/ab/<hash>  immutable, content-addressed: point archives, splat payloads, records
///   damaged/<hash>     objects that were found damaged and can be made again
///   plans/             the open plan and what its workers did (build/plan_folder.hpp)
///   tmp/               being written; what a dead process left there goes with the next builder
///   unpacking          there while a pack is being unpacked
///   lock               byte 0: the builder; byte g: readers of generation g (city_lock.hpp)
class CityPaths {
  public:
    explicit CityPaths(std::filesystem::path root) : root_(std::move(root)) {}

    const std::filesystem::path& root() const { return root_; }
    std::filesystem::path catalog() const { return root_ / "catalog.sqlite"; }
    std::filesystem::path lock() const { return root_ / "lock"; }
    std::filesystem::path objects() const { return root_ / "objects"; }
    std::filesystem::path damaged() const { return root_ / "damaged"; }
    std::filesystem::path plans() const { return root_ / "plans"; }
    std::filesystem::path temporary() const { return root_ / "tmp"; }
    std::filesystem::path unpacking() const { return root_ / "unpacking"; }
    std::filesystem::path object_directory(const Hash128& hash) const {
        return objects() / hash.hex().substr(0, 2);
    }
    std::filesystem::path object(const Hash128& hash) const { return object_directory(hash) / hash.hex(); }

    bool is_city() const { return std::filesystem::exists(catalog()); }
    /// Whether `unpack` is, or was, at work here. Its mark is an empty file: anything else of that name is
    /// somebody else's.
    bool is_unpacking() const {
        std::error_code gone;  // unpack removes it at the end
        return std::filesystem::is_regular_file(unpacking(), gone) &&
               std::filesystem::file_size(unpacking(), gone) == 0 && !gone;
    }

    /// A name in tmp/ that no other process and no other call has: host, process, the time of the first call
    /// and a number are in it. (The first process of every container has the same number.)
    std::filesystem::path new_temporary() const;
    /// Whether a file of this name was made by new_temporary(), or is SQLite's journal of one.
    static bool is_temporary_name(std::string_view name);

  private:
    std::filesystem::path root_;
};

/// The name of this host with what may stand in a file name.
std::string host_name();

/// What stands in a directory that is, or is to become, a city.
enum class CityState {
    nothing,            ///< no such directory, or an empty one
    layout,             ///< the empty directories of a city whose first build did not get far
    city,               ///< a catalog is there
    lost_catalog,       ///< objects of a city without their catalog
    unfinished_unpack,  ///< `unpack` was interrupted
    foreign             ///< something else
};
CityState state_of(const CityPaths& paths);

/// Throws ConfigError unless there is a catalog: says what is there instead, and the way out.
void require_city(const CityPaths& paths);

}  // namespace citysplat::tiling
