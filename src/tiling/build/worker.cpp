#include "tiling/build/worker.hpp"

#include "core/error.hpp"
#include "model/tile_grid.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/build/tile_run.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/carve/free_space.hpp"

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace citysplat::tiling {

namespace {

using Clock = std::chrono::steady_clock;

/// A tile that failed on so many hosts is not tried any more.
constexpr std::size_t kMostHosts = 2;
/// So many idle workers at most repeat a chunk.
constexpr int kMostCopies = 2;

/// Touches a claim as long as it lives.
class Heartbeat {
  public:
    Heartbeat(const PlanFolder::Claim& claim, std::chrono::milliseconds every)
        : thread_([this, &claim, every](const std::stop_token& stop) {
              std::unique_lock lock(mutex_);
              while (!ended_.wait_for(lock, stop, every, [] { return false; }) && !stop.stop_requested())
                  claim.touch();
          }) {}

  private:
    std::mutex mutex_;
    std::condition_variable_any ended_;
    std::jthread thread_;  // last: it uses the others
};

double process_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Worker {
  public:
    Worker(ObjectStore& store, const OpenPlan& open, const WorkOptions& options, const CancelToken& cancel)
        : store_(store),
          name_(open.name),
          plan_(open.plan),
          options_(options),
          cancel_(cancel),
          folder_(store, open.name),
          grid_(static_cast<double>(plan_.draft.generation.tile_size_m)),
          points_(store, plan_.sources, &cancel),
          carved_(points_, cancel) {
        for (const ProductRow& product : plan_.memo) memo_.emplace(product.key, product);
        for (const PlannedTile& tile : plan_.planned)
            if (tile.previous) memo_.emplace(tile.previous->key, *tile.previous);
        report_.plan = name_;
        report_.tiles_planned = plan_.planned.size();
    }

    WorkReport run(TileProcessor& processor, Progress& progress) {
        prepare(processor);
        look();
        {
            Progress::Stage stage(progress, "tiles", left(), "tiles");
            while (left() > 0 && !time_is_up()) {
                cancel_.check();
                if (name_of_open_plan(store_.paths()) != name_) {
                    report_.superseded = true;
                    break;
                }
                const std::uint64_t before = left();
                if (const auto chunk = take_chunk())
                    work_on(chunk->first, chunk->second, processor);
                else
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                look();
                stage.advance(before - std::min(before, left()));
            }
        }
        report_.tiles_left = left();
        list_failures();
        return std::move(report_);
    }

  private:
    using ClaimedChunk = std::pair<std::size_t, PlanFolder::Claim>;

    void prepare(TileProcessor& processor) {
        const GenerationRow& next = plan_.draft.generation;
        processor.set_calibration(next.calibration);
        Hash128 key = processor.parameters_key();
        if (plan_.carve) key = FreeSpace::carved_key(key);
        if (key != next.parameters_key)
            throw ConfigError(store_.paths().root().string() +
                              ": the plan was made by a program with other rules for splats than this one; "
                              "use the same version for plan and work, or run citysplat plan again");
        build_.memory_bytes = options_.memory_bytes;
        build_.threads = options_.threads;
        build_.keep_going = true;
        build_.until = options_.until;
        if (options_.refuse_small_memory) TileRun::refuse_small_memory(plan_.planned, processor, build_);
    }

    bool time_is_up() const { return options_.until && Clock::now() >= *options_.until; }

    /// What the others have done meanwhile.
    void look() {
        folder_.read_receipts([this](const ReceiptRecord& receipt) { take_note(receipt.done); });
        std::map<TileKey, std::set<std::string>> hosts;
        for (const FailedTile& failed : folder_.failures()) hosts[failed.tile].insert(failed.host);
        given_up_.clear();
        for (const auto& [tile, where] : hosts)
            if (!done_.contains(tile) && (where.size() >= kMostHosts || where.contains(host_name())))
                given_up_.insert(tile);
    }

    void take_note(const std::vector<TileKey>& done) {
        done_.insert(done.begin(), done.end());
        last_news_ = Clock::now();
    }

    bool is_open(const PlannedTile& tile) const {
        return !done_.contains(tile.key) && !given_up_.contains(tile.key);
    }
    std::uint64_t left() const {
        return static_cast<std::uint64_t>(
            std::count_if(plan_.planned.begin(), plan_.planned.end(),
                          [this](const PlannedTile& tile) { return is_open(tile); }));
    }
    std::span<const PlannedTile> tiles_of(std::size_t chunk) const {
        const std::size_t begin = chunk == 0 ? 0 : plan_.chunk_ends[chunk - 1];
        return std::span(plan_.planned).subspan(begin, plan_.chunk_ends[chunk] - begin);
    }

    /// The chunks that are not finished: those of the hint first, then the others.
    std::vector<std::size_t> open_chunks() const {
        std::vector<std::size_t> chunks;
        const std::size_t count = plan_.chunk_ends.size();
        const std::size_t first = options_.begin_with ? options_.begin_with->index - 1 : 0;
        const std::size_t step = options_.begin_with ? options_.begin_with->count : 1;
        for (std::size_t lap = 0; lap < step; ++lap)
            for (std::size_t i = (first + lap) % step; i < count; i += step)
                if (const auto tiles = tiles_of(i); std::any_of(
                        tiles.begin(), tiles.end(), [this](const PlannedTile& t) { return is_open(t); }))
                    chunks.push_back(i);
        return chunks;
    }

    /// A chunk that nobody works on; else one whose worker seems to be dead; else, when nothing was heard for
    /// a while, one that somebody works on, too.
    std::optional<ClaimedChunk> take_chunk() {
        std::map<std::size_t, int> copies;
        const double dead_s = std::chrono::duration<double>(options_.dead_after).count();
        for (const auto& claim : folder_.claims())
            if (claim.ended || claim.age_s > dead_s)
                folder_.drop_claim(claim.chunk, claim.copy);
            else
                copies[claim.chunk] = std::max(copies[claim.chunk], claim.copy + 1);
        const bool slow = Clock::now() - last_news_ > options_.slow_after;
        const std::vector<std::size_t> open = open_chunks();
        for (int copy = 0; copy <= (slow ? kMostCopies : 0); ++copy)
            for (const std::size_t chunk : open) {
                const auto found = copies.find(chunk);
                if ((found == copies.end() ? 0 : found->second) > copy) continue;
                if (auto claim = folder_.claim(chunk, copy)) {
                    report_.chunks_repeated += copy > 0;
                    return ClaimedChunk(chunk, std::move(*claim));
                }
            }
        return std::nullopt;
    }

    void work_on(std::size_t chunk, const PlanFolder::Claim& claim, TileProcessor& processor) {
        ++report_.chunks;
        const Heartbeat heartbeat(claim, options_.heartbeat);
        std::vector<PlannedTile> tiles;
        for (const PlannedTile& tile : tiles_of(chunk))
            if (is_open(tile)) tiles.push_back(tile);
        const RegionReader& points = plan_.carve ? static_cast<const RegionReader&>(carved_) : points_;
        const TileMaker maker({grid_, points, processor, store_, cancel_, memo_});
        double counted_s = process_seconds();
        const auto leave = [&](std::vector<TileKey> done, std::vector<ProductRow> made, bool built) {
            if (done.empty()) return;
            ReceiptRecord receipt{name_, std::move(done), std::move(made), {}};
            std::sort(receipt.done.begin(), receipt.done.end());
            std::sort(receipt.made.begin(), receipt.made.end(),
                      [](const ProductRow& a, const ProductRow& b) { return a.tile < b.tile; });
            if (built) receipt.costs = costs_of(receipt.done, receipt.made, process_seconds() - counted_s);
            counted_s = process_seconds();
            folder_.leave_receipt(store_, receipt);
            take_note(receipt.done);
        };
        const auto commit = [&](std::span<ProductRow> batch) {
            store_.flush();
            std::vector<TileKey> done;
            for (const ProductRow& product : batch) done.push_back(product.tile);
            leave(std::move(done), {batch.begin(), batch.end()}, true);
        };
        BuildReport made;
        Progress silent;
        std::vector<ProductRow> products =
            TileRun(maker, processor, build_, commit, made).run(tiles, cancel_, silent);
        for (const TileFailure& failure : made.failures) folder_.leave_failure(failure.tile, failure.message);
        leave_rest(tiles, std::move(products), made, leave);
        add(made);
    }

    /// A receipt for the tiles that needed no work: empty, or there already.
    template <class Leave>
    void leave_rest(const std::vector<PlannedTile>& tiles, std::vector<ProductRow> products,
                    const BuildReport& made, const Leave& leave) {
        std::set<TileKey> not_done(made.tiles_not_begun.begin(), made.tiles_not_begun.end());
        for (const TileFailure& failure : made.failures) not_done.insert(failure.tile);
        std::vector<TileKey> rest;
        for (const PlannedTile& tile : tiles)
            if (!done_.contains(tile.key) && !not_done.contains(tile.key)) rest.push_back(tile.key);
        std::erase_if(products, [this](const ProductRow& product) { return done_.contains(product.tile); });
        leave(std::move(rest), std::move(products), false);
    }

    TileCosts costs_of(const std::vector<TileKey>& done, const std::vector<ProductRow>& made,
                       double seconds) const {
        TileCosts costs{seconds, 0, 0};
        for (const PlannedTile& tile : plan_.planned)
            if (std::binary_search(done.begin(), done.end(), tile.key)) costs.points += tile.points_at_most;
        for (const ProductRow& product : made) costs.bytes += product.object_bytes;
        return costs;
    }

    void add(const BuildReport& made) {
        BuildReport& sum = report_.made;
        sum.tiles_built += made.tiles_built;
        sum.tiles_reused += made.tiles_reused;
        sum.tiles_empty += made.tiles_empty;
        sum.tiles_checked += made.tiles_checked;
        sum.halo_widened += made.halo_widened;
        sum.explanations.insert(sum.explanations.end(), made.explanations.begin(), made.explanations.end());
    }

    /// Of all workers: a tile that nobody tries any more concerns whoever reads the report.
    void list_failures() {
        for (const FailedTile& failed : folder_.failures())
            if (given_up_.contains(failed.tile))
                report_.made.failures.push_back({failed.tile, "on " + failed.host + ": " + failed.message});
    }

    ObjectStore& store_;
    const Hash128 name_;
    const PlanRecord& plan_;
    const WorkOptions& options_;
    const CancelToken& cancel_;
    PlanFolder folder_;
    const TileGrid grid_;
    const CityPoints points_;
    const CarvedPoints carved_;
    BuildOptions build_;
    std::map<Hash128, ProductRow> memo_;
    std::set<TileKey> done_, given_up_;
    Clock::time_point last_news_ = Clock::now();
    WorkReport report_;
};

}  // namespace

WorkReport work_on_plan(const std::filesystem::path& city, const MakeProcessor& make_processor,
                        const WorkOptions& options, const CancelToken& cancel, Progress& progress) {
    ObjectStore store{CityPaths(city)};
    const auto open = read_open_plan(store);
    if (!open) return {};
    const auto processor = make_processor(open->plan.draft.generation);
    return Worker(store, *open, options, cancel).run(*processor, progress);
}

}  // namespace citysplat::tiling
