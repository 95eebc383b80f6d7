#include "tiling/build/builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/crs/crs.hpp"
#include "tiling/build/build_inputs.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/build/shards.hpp"
#include "tiling/build/tile_run.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/carve/free_space.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/generation_record.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace citysplat::tiling {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::set<Sector> changed_sectors(const std::map<Sector, Hash128>& before,
                                 const std::map<Sector, Hash128>& now) {
    std::set<Sector> changed;
    const auto add_differences = [&](const auto& a, const auto& b) {
        for (const auto& [sector, hash] : a) {
            const auto found = b.find(sector);
            if (found == b.end() || found->second != hash) changed.insert(sector);
        }
    };
    add_differences(before, now);
    add_differences(now, before);
    return changed;
}

/// About what the payloads will take; nobody knows before they are made.
std::uint64_t payload_bytes_of(const BuildPlan& plan) {
    std::uint64_t bytes = 0;
    for (const PlannedTile& tile : plan.planned) bytes += tile.points_at_most * 10 + 4096;
    return bytes;
}

class Builder {
  public:
    Builder(const std::filesystem::path& city, TileProcessor& processor, const BuildOptions& options,
            const CancelToken& cancel, Progress& progress)
        : store_(CityPaths(city)),
          processor_(processor),
          options_(options),
          cancel_(cancel),
          progress_(progress) {}

    BuildReport run() {
        take_directory();
        const CityLock lock = CityLock::builder(store_.paths(), "build");
        store_.create_layout();
        store_.clear_temporary();
        open_catalog();
        prepare();
        if (options_.dry_run) return dry_run();
        std::map<Hash128, ProductRow> memo;
        if (!plan_.planned.empty())
            for (ProductRow& product : catalog_->products()) memo.emplace(product.key, std::move(product));
        const auto begin = Clock::now();
        std::vector<ProductRow> tiles = make_tiles(plan_.planned, memo, [this](std::span<ProductRow> batch) {
            store_.flush();
            catalog_->add_products(batch);
        });
        tiles.insert(tiles.end(), plan_.reused.begin(), plan_.reused.end());
        report_.tiles_s = seconds_since(begin);
        if (report_.failures.empty()) publish(tiles);
        return std::move(report_);
    }

    BuildReport run_shard() {
        take_directory();
        const CityLock lock = CityLock::shard(store_.paths());
        const StagedPlan staged = stage();
        const std::vector<PlannedTile> part = with_previous(part_of(staged.plan, *options_.shard));
        catalog_.reset();
        const auto begin = Clock::now();
        const std::vector<ProductRow> tiles =
            make_tiles(part, memo_of(part), [this](std::span<ProductRow>) { store_.flush(); });
        report_.tiles_s = seconds_since(begin);
        report_.tiles_total = tiles.size();
        for (const ProductRow& tile : tiles) {
            report_.splats += tile.splats;
            report_.digest += tile.digest;
            report_.removed += tile.removed;
        }
        if (report_.failures.empty()) leave_share(store_, staged, *options_.shard, tiles);
        return std::move(report_);
    }

  private:
    /// A city, a directory in which one was begun, or an empty or new one.
    void take_directory() {
        const CityPaths& paths = store_.paths();
        switch (state_of(paths)) {
            case CityState::city:
            case CityState::layout:
                return;
            case CityState::nothing:
                is_new_ = true;
                create_directories_durably(paths.root());
                return;
            case CityState::foreign:
                throw UsageError(paths.root().string() +
                                 " exists and is not a city; choose an empty or new directory");
            case CityState::lost_catalog:
            case CityState::unfinished_unpack:
                require_city(paths);  // throws, and says what to do
        }
    }

    void open_catalog() {
        if (const CityPaths& paths = store_.paths(); !paths.is_city()) {
            const auto empty = paths.new_temporary();
            Catalog::create(empty);
            install_catalog(empty, paths);
        }
        catalog_.emplace(Catalog::open_to_write(store_.paths().catalog()));
        latest_ = catalog_->latest();
        if (latest_) check_rows(*catalog_, store_, *latest_);
        std::filesystem::remove(store_.paths().unpacking());  // the catalog is there: the unpack was complete
    }

    /// From the inputs to the plan.
    void prepare() {
        auto begin = Clock::now();
        inputs_ = resolve_inputs({*catalog_, store_}, options_, report_, cancel_, progress_);
        report_.partition_s = seconds_since(begin);

        begin = Clock::now();
        points_.emplace(store_, sources_of(*catalog_, inputs_), &cancel_);
        count_points();
        describe();
        calibrate();
        report_.calibrate_s = seconds_since(begin);

        begin = Clock::now();
        plan_ = plan_tiles();
        report_.plan_s = seconds_since(begin);
        report_.tiles_reused = plan_.reused.size();
        report_.predicted_disk_bytes += payload_bytes_of(plan_);
        for (const PlannedTile& tile : plan_.planned)
            report_.predicted_memory_bytes = std::max<std::uint64_t>(
                report_.predicted_memory_bytes, processor_.estimated_bytes(tile.points_at_most));
        refuse_full_disk();
        if (options_.refuse_small_memory) refuse_small_memory();
    }

    /// Only now, because the most crowded place is known when the inputs have been read. A sixth of a
    /// prediction is room for the holes between several tiles; a large tile is made alone.
    void refuse_small_memory() const {
        if (plan_.planned.empty()) return;
        const std::uint64_t least = report_.predicted_memory_bytes / 6 * 5 + TileRun::kBesideTiles;
        if (least > options_.memory_bytes)
            throw UsageError("--memory " + std::to_string(options_.memory_bytes >> 20) +
                             "M is too little for this: the least is " + std::to_string((least >> 20) + 1) +
                             "M, for the most crowded place; what was read is kept for the next build");
    }

    void refuse_full_disk() const {
        const std::uint64_t free = free_disk_bytes(store_.paths().root());
        if (report_.predicted_disk_bytes > free)
            throw ResourceError("this build needs about " + format_bytes(report_.predicted_disk_bytes) +
                                " in " + store_.paths().root().string() + ", which has " +
                                format_bytes(free) + "; free some space and run the same command again");
    }

    void count_points() {
        std::set<std::int64_t> ids;
        const Transaction reading = catalog_->reading();
        for (const InputRow& input : inputs_)
            if (ids.insert(input.source).second) report_.points += catalog_->source(input.source).counts;
        report_.far_outliers = points_->quarantined_points();
        if (!inputs_.empty() && report_.points.kept == 0)
            report_.warnings.push_back("the inputs hold no points that can be used (" +
                                       format_count(report_.points.read) + " read): the city is empty");
    }

    void describe() {
        next_.id = latest_ ? latest_->id + 1 : 1;
        next_.note = "build";
        next_.parameters = options_.parameters;
        next_.classes = options_.classes;
        next_.points = report_.points.kept;
        next_.tile_size_m = options_.tile_size_m != 0 ? options_.tile_size_m
                            : latest_                 ? latest_->tile_size_m
                                                      : kDefaultTileSize_m;
        agree_on_crs();
        report_.crs = next_.crs;
    }

    /// One coordinate system for all inputs, or none for all. Throws ConfigError naming the one that differs.
    void agree_on_crs() {
        const InputRow* unknown = nullptr;
        const Transaction reading = catalog_->reading();
        for (const InputRow& input : inputs_) {
            const std::string crs = catalog_->source(input.source).crs;
            if (crs.empty()) {
                unknown = &input;
                continue;
            }
            if (next_.crs.empty()) next_.crs = crs;
            if (!io::same_crs(crs, next_.crs))
                throw ConfigError(input.path + " is in " + crs.substr(0, 60) + ", the rest of the city in " +
                                  next_.crs.substr(0, 60) +
                                  "; transform it first, or give it a city of its own");
        }
        if (unknown && !next_.crs.empty())
            throw ConfigError(
                unknown->path + " does not say its coordinate system, the rest of the city is in " +
                next_.crs.substr(0, 60) + "; assign it with --crs, or give it a city of its own");
    }

    void calibrate() {
        const bool first = !latest_ || latest_->calibration.samples == 0;
        if (!first) {
            next_.calibration = latest_->calibration;
            next_.measured = latest_->measured;
            next_.findings = latest_->findings;
            next_.findings_of = latest_->findings_of;
        }
        if (!options_.dry_run && points_->total_points() > 0 &&
            (first || options_.recalibrate || options_.measure_drift ||
             (options_.gate && (options_.shard || !findings_are_of_these_points())))) {
            next_.measured = processor_.calibrate(*points_, cancel_, progress_);
            if (first || options_.recalibrate) next_.calibration = next_.measured;
            if (first || options_.shard || !findings_are_of_these_points()) next_.findings_of = next_.id;
            next_.findings = processor_.findings();
        }
        processor_.set_calibration(next_.calibration);
        next_.parameters_key = processor_.parameters_key();
        if (options_.carve)
            next_.parameters_key =
                Hasher().text("carved").number(FreeSpace::kVersion).hash(next_.parameters_key).finish();
        report_.calibration = next_.calibration;
        report_.findings = next_.findings;
        report_.findings_of = next_.findings_of;
    }

    bool findings_are_of_these_points() {
        const auto measured =
            latest_->findings_of > 0 ? catalog_->generation(latest_->findings_of) : std::nullopt;
        return measured && measured->classes == next_.classes &&
               content_hashes(sources_of(*catalog_, catalog_->inputs(measured->id))) ==
                   content_hashes(points_->sources());
    }

    BuildPlan plan_tiles() {
        grid_.emplace(static_cast<double>(next_.tile_size_m));
        PlanInput input{.grid = *grid_,
                        .points = *points_,
                        .processor = processor_,
                        .store = store_,
                        .worker_bytes = TileRun::worker_bytes(options_),
                        .most_tile_points = options_.most_tile_points,
                        .changed = {},
                        .before = {},
                        .all_because = Reason::new_tile,
                        .margin_steps = options_.carve ? FreeSpace::kMarginSteps : 0};
        if (latest_) {
            input.all_because = why_all();
            if (input.all_because != Reason::split) input.before = catalog_->tiles(latest_->id);
            const auto before = sources_of(*catalog_, catalog_->inputs(latest_->id));
            const auto hashes = options_.carve ? content_and_ray_hashes : content_hashes;
            input.changed = changed_sectors(hashes(before), hashes(points_->sources()));
        }
        return make_plan(input);
    }

    /// What concerns every tile of the city.
    std::optional<Reason> why_all() const {
        if (latest_->tile_size_m != next_.tile_size_m) return Reason::split;
        if (latest_->parameters_key == next_.parameters_key) return std::nullopt;
        const bool same_words = latest_->parameters == next_.parameters &&
                                latest_->classes == next_.classes &&
                                latest_->calibration == next_.calibration;
        return same_words ? Reason::algorithm : Reason::parameters;
    }

    BuildReport dry_run() {
        if (is_new_) {
            catalog_.reset();
            std::filesystem::remove(store_.paths().catalog());
            store_.remove_layout();
        }
        report_.generation = latest_ ? latest_->id : 0;
        report_.tiles_total = plan_.reused.size() + plan_.planned.size();
        report_.tiles_checked = plan_.planned.size();
        for (const PlannedTile& tile : plan_.planned) report_.explanations.push_back({tile.key, tile.reason});
        return std::move(report_);
    }

    std::vector<ProductRow> make_tiles(std::span<const PlannedTile> planned,
                                       const std::map<Hash128, ProductRow>& memo,
                                       const TileRun::Commit& commit) {
        const CarvedPoints carved(*points_, cancel_);
        const RegionReader& points = options_.carve ? static_cast<const RegionReader&>(carved) : *points_;
        const TileMaker maker({*grid_, points, processor_, store_, cancel_, memo});
        return TileRun(maker, processor_, options_, commit, report_).run(planned, cancel_, progress_);
    }

    /// The staged plan for this work, staged now unless another shard has done it.
    StagedPlan stage() {
        const CityLock staging = CityLock::staging(store_.paths(), cancel_);
        store_.create_layout();
        open_catalog();
        prepare();
        GenerationRecord draft = make_record(*catalog_, next_, inputs_, plan_.reused);
        auto staged = read_staged(store_);
        if (!staged || !same_work(*staged, draft))
            staged = stage_plan(store_, {std::move(draft), plan_.planned});
        return std::move(*staged);
    }

    std::vector<PlannedTile> with_previous(std::vector<PlannedTile> part) {
        std::map<TileKey, ProductRow> before;
        if (latest_ && latest_->tile_size_m == next_.tile_size_m)
            for (ProductRow& tile : catalog_->tiles(latest_->id)) before.emplace(tile.tile, std::move(tile));
        for (PlannedTile& tile : part)
            if (const auto found = before.find(tile.key); found != before.end())
                tile.previous = found->second;
        return part;
    }

    static std::map<Hash128, ProductRow> memo_of(const std::vector<PlannedTile>& part) {
        std::map<Hash128, ProductRow> memo;
        for (const PlannedTile& tile : part)
            if (tile.previous) memo.emplace(tile.previous->key, *tile.previous);
        return memo;
    }

    void publish(const std::vector<ProductRow>& tiles) {
        const auto begin = Clock::now();
        for (const ProductRow& tile : tiles) {
            next_.splats += tile.splats;
            next_.digest += tile.digest;
            report_.removed += tile.removed;
        }
        next_.tiles = tiles.size();
        next_.created_s = static_cast<std::int64_t>(std::time(nullptr));
        report_.tiles_total = tiles.size();
        report_.splats = next_.splats;
        report_.digest = next_.digest;
        if (latest_ && !differs_from_latest()) {
            report_.generation = latest_->id;
            refresh_generation(*catalog_, store_, *latest_, inputs_);
        } else if (options_.gate && (report_.held_back = options_.gate(next_.findings))) {
            report_.generation = latest_ ? latest_->id : 0;
        } else {
            report_.generation = publish_generation(*catalog_, store_, next_, inputs_, tiles);
            report_.published = true;
        }
        report_.publish_s = seconds_since(begin);
    }

    /// A touched file makes no generation; a renamed one does, because the inputs are part of it.
    bool differs_from_latest() {
        if (report_.tiles_built > 0 || latest_->tiles != next_.tiles || latest_->digest != next_.digest ||
            latest_->parameters_key != next_.parameters_key || latest_->tile_size_m != next_.tile_size_m ||
            latest_->parameters != next_.parameters || latest_->classes != next_.classes ||
            !(latest_->measured == next_.measured) || latest_->findings != next_.findings)
            return true;
        const auto before = catalog_->inputs(latest_->id);
        return !std::equal(before.begin(), before.end(), inputs_.begin(), inputs_.end(),
                           [](const InputRow& a, const InputRow& b) {
                               return a.path == b.path && a.trajectory == b.trajectory &&
                                      a.reading == b.reading && a.source == b.source;
                           });
    }

    ObjectStore store_;
    bool is_new_ = false;
    TileProcessor& processor_;
    const BuildOptions& options_;
    const CancelToken& cancel_;
    Progress& progress_;
    BuildReport report_;
    std::optional<Catalog> catalog_;
    std::optional<GenerationRow> latest_;
    GenerationRow next_;
    std::vector<InputRow> inputs_;
    std::optional<CityPoints> points_;
    std::optional<TileGrid> grid_;
    BuildPlan plan_;
};

}  // namespace

BuildReport build_city(const std::filesystem::path& city, TileProcessor& processor,
                       const BuildOptions& options, const CancelToken& cancel, Progress& progress) {
    Builder builder(city, processor, options, cancel, progress);
    return options.shard ? builder.run_shard() : builder.run();
}

}  // namespace citysplat::tiling
