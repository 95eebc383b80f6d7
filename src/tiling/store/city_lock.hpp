#pragma once

#include "core/cancel.hpp"
#include "core/file.hpp"
#include "tiling/store/city_paths.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace citysplat::tiling {

/// Record locks on the city's `lock` file, which the system drops when the process dies, however it dies.
///
///   byte 0   exclusive: the one builder (build, gc, rollback, repair, publish)
///            shared:    shards, which need the catalog to stand still but do not write it
///   byte g   shared:    readers of generation g
///            exclusive: gc while it forgets generation g
///   last     exclusive: the shard that stages the plan
///
/// They are "open file description" locks: they belong to this object, not to the process, so that two
/// threads exclude each other as two processes do, and a shared lock needs no right to write: readers work on
/// a read-only mount.
class CityLock {
  public:
    /// Throws BusyError at once, naming who holds the city. Creates the lock file.
    static CityLock builder(const CityPaths& paths, std::string_view verb);
    /// Shares the city with other shards; BusyError while a builder has it.
    static CityLock shard(const CityPaths& paths);
    /// The turn to look at the inputs and to stage the plan, which shards take one after the other. Waits.
    static CityLock staging(const CityPaths& paths, const CancelToken& cancel);
    /// Pins a generation. Nothing when gc is forgetting it at this moment: look for the current one again.
    /// A city without lock file (a copy on read-only media) gives an empty lock: nobody can collect there.
    static std::optional<CityLock> pin(const CityPaths& paths, std::int64_t generation);
    /// For any number of generations with one open file; begins without one. To pin them takes `read`.
    static CityLock several(const CityPaths& paths, File::Mode mode);
    /// False when gc is forgetting the generation at this moment.
    bool add_pin(std::int64_t generation) const;
    /// For gc. False when a reader holds the generation.
    bool add_collect(std::int64_t generation) const;
    /// Whether a reader holds the generation at this moment. Needs no right to write.
    static bool is_pinned(const CityPaths& paths, std::int64_t generation) {
        return is_any_pinned(paths, generation, generation);
    }
    /// The same for any of these generations, both ends included.
    static bool is_any_pinned(const CityPaths& paths, std::int64_t first, std::int64_t last);

  private:
    explicit CityLock(File file) : file_(std::move(file)) {}
    bool try_lock(std::int64_t byte, bool exclusive) const;

    File file_;
};

}  // namespace citysplat::tiling
