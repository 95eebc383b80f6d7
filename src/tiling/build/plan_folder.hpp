#pragma once

#include "tiling/build/plan_record.hpp"
#include "tiling/store/object_store.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// plans/ of a city: the one plan that is open, and what its workers say to each other.
///
///   plans/current              the name of the open plan
///   plans/costs                what tiles cost so far; a hint
///   plans/<plan>/done/receipt-…  the names of the plan and of a receipt object
///   plans/<plan>/claims/N      somebody works on chunk N; a hint
///   plans/<plan>/claims/N.k    somebody else does, too, because nothing else was left
///   plans/<plan>/failed/…      a tile that could not be made: tile, host, message
///   plans/<plan>/held          what gates said when it was to be published
///
/// Receipts are written once and never changed; claims come and go. Making a tile twice is a waste and never
/// an error, because tiles are deterministic and objects have the name of their content. So nothing here
/// needs a lock, only that a file can be created exclusively (O_EXCL) and that a rename is atomic, which
/// network file systems promise.

struct OpenPlan {
    Hash128 name;
    PlanRecord plan;
};

/// Nothing when no plan is open, or one of an earlier version of the program is.
std::optional<OpenPlan> read_open_plan(const ObjectStore& store);
/// The name alone; cheap. Nothing also when the file is not there for the moment.
std::optional<Hash128> name_of_open_plan(const CityPaths& paths);
/// Makes the plan the open one, durably, in place of another. Requires the builder's lock.
OpenPlan open_plan(ObjectStore& store, PlanRecord plan);
/// Forgets the open plan: removes the files of plans/ that are about it, and nothing else that may lie there.
/// The objects stay until gc. Requires the builder's lock.
void close_plan(const CityPaths& paths);

/// What tiles cost in this city; nothing when nobody knows yet.
std::optional<TileCosts> read_costs(const CityPaths& paths);
/// What these would cost nearly anywhere.
TileCosts usual_costs(std::span<const PlannedTile> tiles);
/// Remembers the costs when they are of enough tiles to mean something.
void keep_costs(const CityPaths& paths, const TileCosts& costs);

struct FailedTile {
    TileKey tile;
    std::string host, message;
};

/// The receipts, claims and failures of one plan.
class PlanFolder {
  public:
    PlanFolder(const ObjectStore& store, const Hash128& plan);

    /// Leaves a receipt for what is durable already, durably. Throws BusyError when the plan is gone.
    void leave_receipt(ObjectStore& store, const ReceiptRecord& receipt);
    void leave_failure(const TileKey& tile, const std::string& message);

    /// Reads the receipts that came since the last call. One that cannot be read may not have arrived here
    /// yet, and is tried again by the next call.
    void read_receipts(const std::function<void(const ReceiptRecord&)>& visit);
    /// The receipts that were there and could not be read.
    const std::vector<std::string>& unreadable() const { return unreadable_; }
    /// Sets aside the receipts that name one of these tiles: they will be made again.
    void void_receipts(const std::set<TileKey>& tiles);
    /// The names of all receipt objects.
    std::vector<Hash128> receipt_objects() const;
    std::vector<FailedTile> failures() const;
    /// Lets workers try again what failed: somebody planned anew, and may have mended the reason.
    void forget_failures() const;

    /// A claim of this process, removed with the object.
    class Claim {
      public:
        explicit Claim(std::filesystem::path path) : path_(std::move(path)) {}
        ~Claim();
        Claim(Claim&& other) noexcept : path_(std::exchange(other.path_, {})) {}
        Claim& operator=(Claim&&) = delete;
        void touch() const;  ///< says that somebody is still at work

      private:
        std::filesystem::path path_;
    };
    /// Nothing when somebody else has the chunk. `copy` 0 is the first worker on it.
    std::optional<Claim> claim(std::size_t chunk, int copy);
    /// Removes a claim whose owner seems to have died.
    void drop_claim(std::size_t chunk, int copy);

    struct ClaimState {
        std::size_t chunk;
        int copy;
        double age_s;  ///< since it was touched, by the clock of the file system
        bool ended;    ///< its owner is known to have ended
    };
    std::vector<ClaimState> claims() const;

    /// Remembers, for `status`, that gates held the plan back and why.
    void hold(const std::string& objection);
    std::optional<std::string> held_back() const;

    const Hash128& plan() const { return plan_; }
    bool exists() const;

  private:
    const ObjectStore& store_;
    Hash128 plan_;
    std::filesystem::path folder_, done_, claims_, failed_;
    std::set<std::string> seen_;
    std::vector<std::string> unreadable_;
};

/// How far the work is.
struct PlanStatus {
    std::uint64_t tiles = 0, tiles_done = 0;
    double core_seconds_spent = 0, core_seconds_left = 0;
    std::vector<FailedTile> failed;  ///< and not made by somebody else
    std::vector<PlanFolder::ClaimState> claims;
};
PlanStatus status_of(const ObjectStore& store, const OpenPlan& open);

/// What the open plan and its receipts need: objects, and the identities of sources. Objects that are younger
/// than the plan may be of a worker that has not left its receipt yet.
struct PlanNeeds {
    std::set<Hash128> objects, sources;
    std::optional<std::filesystem::file_time_type> young_since;
};
PlanNeeds needs_of_plan(const ObjectStore& store);

}  // namespace citysplat::tiling
