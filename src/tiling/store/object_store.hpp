#pragma once

#include "core/file.hpp"
#include "core/hash.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/object_kind.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace citysplat::tiling {

/// The immutable objects of a city, named by the hash of their bytes.
///
/// Writing, from any number of threads: create() a writer, append, finish(). A finished object waits,
/// complete but unnamed, until flush() makes a whole batch durable: fsync of every file, rename to its name,
/// fsync of the directories. Only after flush() may the catalog mention it. An object that already exists is
/// written again all the same: that is how a damaged one gets repaired.
class ObjectStore {
  public:
    explicit ObjectStore(CityPaths paths) : paths_(std::move(paths)) {}
    /// Finished objects that were never flushed disappear.
    ~ObjectStore();
    ObjectStore(const ObjectStore&) = delete;
    ObjectStore& operator=(const ObjectStore&) = delete;

    /// Creates the directories of a city that are missing, durably.
    void create_layout() const;
    /// Undoes the making of a city that did not come about: all objects, and what create_layout() and the
    /// lock made. Files of others stay, and so do the directories they are in. Requires that the store was
    /// empty.
    void remove_layout();
    /// Removes what a killed process left in tmp/, and nothing else. Requires the builder's lock. What was
    /// touched within `living` may be of a worker, which holds no lock.
    void clear_temporary(std::chrono::seconds living = {}) const;

    class Writer {
      public:
        void append(std::span<const std::byte> data);
        std::uint64_t position() const { return position_; }
        /// Hands the file to the store's batch. Returns the name it will have.
        Hash128 finish();
        ~Writer();  ///< an unfinished object disappears
        Writer(Writer&&) noexcept = default;

      private:
        friend class ObjectStore;
        Writer(ObjectStore& store, const std::filesystem::path& path);
        ObjectStore* store_;
        File file_;
        Hasher hasher_;
        std::uint64_t position_ = 0;
    };
    Writer create();
    /// Number of finished objects that wait for flush().
    std::size_t pending() const;
    /// When it fails, those of the batch that have no name yet disappear.
    void flush();

    /// Size in bytes, nothing when absent.
    std::optional<std::uint64_t> size_of(const Hash128& hash) const;
    /// Throws CorruptionError saying `what` is missing.
    File open(const Hash128& hash, std::string_view what) const;
    /// Reads all bytes and compares them with the name. False also when there is no such object, or when the
    /// disk cannot read it any more (EIO).
    bool intact(const Hash128& hash) const;
    /// Nothing when the object is absent, cannot be read, or does not begin like one of ours.
    std::optional<ObjectKind> kind_of(const Hash128& hash) const;
    void remove(const Hash128& hash) const;
    /// Moves an object to damaged/, durably: it is no longer in the store, but its bytes are kept.
    void set_aside(const Hash128& hash) const;
    /// Every file whose name is that of an object, whatever it holds.
    void for_each(const std::function<void(const Hash128&, std::uint64_t bytes)>& visit) const;
    /// Whether at least one object of ours is there.
    bool holds_objects() const;

    const CityPaths& paths() const { return paths_; }

  private:
    /// Ends when `visit` says so; true when it did.
    bool for_each_until(const std::function<bool(const Hash128&, std::uint64_t)>& visit) const;

    /// Stays open until flush(): a failed write-back is only reported to who had the file open.
    struct Pending {
        Hash128 hash;
        File file;
    };
    static void discard(std::span<const Pending> batch);
    void make_durable(std::span<Pending> batch) const;

    CityPaths paths_;
    mutable std::mutex mutex_;
    std::vector<Pending> pending_;
};

}  // namespace citysplat::tiling
