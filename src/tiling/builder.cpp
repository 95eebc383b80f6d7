#include "tiling/builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/build_inputs.hpp"
#include "tiling/build_plan.hpp"
#include "tiling/city_lock.hpp"
#include "tiling/generation_record.hpp"
#include "tiling/tile_maker.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace citysplat::tiling {

namespace {

using Clock = std::chrono::steady_clock;

/// What the program needs beside the tiles: code, catalog, plan, open files.
constexpr std::uint64_t kOverheadBytes = std::uint64_t{96} << 20;
/// Finished tiles become durable in batches: this many, or this old.
constexpr std::size_t kBatchTiles = 64;
constexpr std::chrono::seconds kBatchAge{2};

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
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
        const CityLock lock = prepare();
        const auto latest = catalog_->latest();
        auto begin = Clock::now();
        const std::vector<InputRow> inputs =
            resolve_inputs(*catalog_, store_, options_, cancel_, progress_, report_);
        report_.partition_s = seconds_since(begin);

        begin = Clock::now();
        const CityPoints points(store_, sources_of(inputs));
        count_points(inputs, points);
        GenerationRow next = describe(latest, inputs);
        calibrate(latest, points, next);
        report_.calibrate_s = seconds_since(begin);

        begin = Clock::now();
        const TileGrid grid(static_cast<double>(next.tile_size_m));
        const BuildPlan plan = plan_tiles(latest, grid, points, next);
        report_.plan_s = seconds_since(begin);
        if (options_.dry_run) return dry_run(latest, plan);

        begin = Clock::now();
        std::vector<ProductRow> tiles = make_tiles(plan, grid, points);
        report_.tiles_s = seconds_since(begin);
        if (!report_.failures.empty()) return std::move(report_);

        begin = Clock::now();
        publish(latest, next, inputs, tiles);
        report_.publish_s = seconds_since(begin);
        return std::move(report_);
    }

  private:
    CityLock prepare() {
        const CityPaths& paths = store_.paths();
        if (!paths.is_city() && std::filesystem::exists(paths.root()) &&
            !std::filesystem::is_empty(paths.root()) && !std::filesystem::exists(paths.lock()))
            throw UsageError(paths.root().string() +
                             " exists and is not a city; choose an empty or new directory");
        std::filesystem::create_directories(paths.root());
        CityLock lock = CityLock::builder(paths, "build");
        store_.create_layout();
        store_.clear_temporary();
        if (!paths.is_city()) create_catalog();
        catalog_.emplace(Catalog::open_to_write(paths.catalog()));
        return lock;
    }

    /// Complete or not there at all.
    void create_catalog() {
        const auto temporary = store_.paths().temporary() / "catalog.sqlite";
        Catalog::create(temporary);
        if (::rename(temporary.c_str(), store_.paths().catalog().c_str()) != 0)
            throw_errno("cannot rename to", store_.paths().catalog());
        sync_directory(store_.paths().root());
    }

    std::vector<CitySource> sources_of(const std::vector<InputRow>& inputs) {
        std::set<std::int64_t> ids;
        for (const InputRow& input : inputs) ids.insert(input.source);
        std::vector<CitySource> sources;
        for (const std::int64_t id : ids) sources.push_back({catalog_->source(id), catalog_->segments(id)});
        return sources;
    }

    void count_points(const std::vector<InputRow>& inputs, const CityPoints& points) {
        std::set<std::int64_t> ids;
        for (const InputRow& input : inputs)
            if (ids.insert(input.source).second) report_.points += catalog_->source(input.source).counts;
        report_.far_outliers = points.quarantined_points();
    }

    GenerationRow describe(const std::optional<GenerationRow>& latest, const std::vector<InputRow>& inputs) {
        GenerationRow next;
        next.note = "build";
        next.parameters = options_.parameters;
        next.classes = options_.classes;
        next.tile_size_m = options_.tile_size_m != 0 ? options_.tile_size_m
                           : latest                  ? latest->tile_size_m
                                                     : kDefaultTileSize_m;
        for (const InputRow& input : inputs) {
            const std::string crs = catalog_->source(input.source).crs;
            if (next.crs.empty()) next.crs = crs;
            if (!crs.empty() && crs != next.crs)
                throw ConfigError(input.path +
                                  " has another coordinate system than the rest of the city; "
                                  "transform it first, or give it a city of its own");
        }
        return next;
    }

    void calibrate(const std::optional<GenerationRow>& latest, const CityPoints& points,
                   GenerationRow& next) {
        if (latest && !options_.recalibrate) {
            next.calibration = latest->calibration;
            next.measured = latest->measured;
        } else if (points.total_points() > 0) {
            next.calibration = next.measured = processor_.calibrate(points, cancel_, progress_);
        }
        processor_.set_calibration(next.calibration);
        next.parameters_key = processor_.parameters_key();
        report_.calibration = next.calibration;
    }

    std::uint64_t tiles_budget() const {
        return std::max(options_.memory_bytes / 2,
                        options_.memory_bytes - std::min(options_.memory_bytes, kOverheadBytes));
    }

    BuildPlan plan_tiles(const std::optional<GenerationRow>& latest, const TileGrid& grid,
                         const CityPoints& points, const GenerationRow& next) {
        PlanInput input{.grid = grid,
                        .points = points,
                        .processor = processor_,
                        .store = store_,
                        .worker_bytes = tiles_budget() / static_cast<std::uint64_t>(options_.threads),
                        .most_tile_points = options_.most_tile_points,
                        .changed = {},
                        .before = {},
                        .all_because = Reason::new_tile};
        if (latest) {
            input.all_because.reset();
            if (latest->parameters_key != next.parameters_key) {
                const bool same_words = latest->parameters == next.parameters &&
                                        latest->classes == next.classes &&
                                        latest->calibration == next.calibration;
                input.all_because = same_words ? Reason::algorithm : Reason::parameters;
            }
            if (latest->tile_size_m != next.tile_size_m) input.all_because = Reason::split;
            if (input.all_because != Reason::split) input.before = catalog_->tiles(latest->id);
            const CityPoints before(store_, sources_of(catalog_->inputs(latest->id)));
            input.changed = changed_sectors(before.sectors(), points.sectors());
        }
        return make_plan(input);
    }

    static std::set<Sector> changed_sectors(const std::map<Sector, Hash128>& before,
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

    BuildReport dry_run(const std::optional<GenerationRow>& latest, const BuildPlan& plan) {
        report_.generation = latest ? latest->id : 0;
        report_.tiles_total = plan.reused.size() + plan.planned.size();
        report_.tiles_reused = plan.reused.size();
        report_.tiles_checked = plan.planned.size();
        for (const PlannedTile& tile : plan.planned) {
            report_.explanations.push_back({tile.key, tile.reason});
            report_.predicted_memory_bytes = std::max<std::uint64_t>(
                report_.predicted_memory_bytes, processor_.estimated_bytes(tile.points_at_most));
            report_.predicted_disk_bytes += payload_bytes_at_most(tile.points_at_most);
        }
        return std::move(report_);
    }

    /// Payloads are not known before they are made; a splat for every five points is more than any method
    /// gives.
    static std::uint64_t payload_bytes_at_most(std::uint64_t points) { return points / 5 * 24 + 4096; }

    std::vector<ProductRow> make_tiles(const BuildPlan& plan, const TileGrid& grid,
                                       const CityPoints& points) {
        std::map<Hash128, ProductRow> memo;
        if (!plan.planned.empty())
            for (ProductRow& product : catalog_->products()) memo.emplace(product.key, std::move(product));
        const TileMaker maker({grid, points, processor_, store_, cancel_, memo});
        MemoryScheduler scheduler(tiles_budget(), options_.threads, cancel_);
        std::vector<std::uint64_t> bytes;
        for (const PlannedTile& tile : plan.planned)
            bytes.push_back(processor_.estimated_bytes(tile.points_at_most));
        Progress::Stage stage(progress_, "tiles", plan.planned.size(), "tiles");
        std::vector<ProductRow> tiles = plan.reused;
        report_.tiles_reused = plan.reused.size();
        report_.tiles_checked = plan.planned.size();
        last_batch_ = Clock::now();
        scheduler.run(bytes, [&](std::size_t i, MemoryScheduler::Grant& grant) {
            const PlannedTile& tile = plan.planned[i];
            try {
                MadeTile made = maker.make(tile, grant);
                const std::lock_guard guard(mutex_);
                take(tile, std::move(made), tiles);
            } catch (const Error& error) {
                if (!options_.keep_going || error.kind() == ErrorKind::interrupted) throw;
                const std::lock_guard guard(mutex_);
                report_.failures.push_back({tile.key, error.what()});
            }
            stage.advance(1);
        });
        commit_batch(tiles);
        std::sort(report_.explanations.begin(), report_.explanations.end(),
                  [](const Explanation& a, const Explanation& b) { return a.tile < b.tile; });
        return tiles;
    }

    /// Requires mutex_.
    void take(const PlannedTile& tile, MadeTile made, std::vector<ProductRow>& tiles) {
        if (made.widened) ++report_.halo_widened;
        switch (made.how) {
            case MadeTile::How::empty:
                ++report_.tiles_empty;
                return;
            case MadeTile::How::reused:
                ++report_.tiles_reused;
                tiles.push_back(std::move(made.product));
                return;
            case MadeTile::How::built:
                ++report_.tiles_built;
                report_.explanations.push_back({tile.key, made.reason});
                batch_.push_back(std::move(made.product));
                if (batch_.size() >= kBatchTiles || Clock::now() - last_batch_ > kBatchAge)
                    commit_batch(tiles);
        }
    }

    void commit_batch(std::vector<ProductRow>& tiles) {
        store_.flush();
        if (!batch_.empty()) catalog_->add_products(batch_);
        for (ProductRow& product : batch_) tiles.push_back(std::move(product));
        batch_.clear();
        last_batch_ = Clock::now();
    }

    void publish(const std::optional<GenerationRow>& latest, GenerationRow& next,
                 const std::vector<InputRow>& inputs, const std::vector<ProductRow>& tiles) {
        for (const ProductRow& tile : tiles) {
            next.splats += tile.splats;
            next.digest += tile.digest;
        }
        next.tiles = tiles.size();
        next.points = report_.points.kept;
        next.created_s = static_cast<std::int64_t>(std::time(nullptr));
        report_.tiles_total = tiles.size();
        report_.splats = next.splats;
        report_.digest = next.digest;
        if (latest && !differs(*latest, next, inputs)) {
            report_.generation = latest->id;
            catalog_->restamp(inputs);
            return;
        }
        report_.generation = publish_generation(*catalog_, store_, next, inputs, tiles);
        report_.published = true;
    }

    /// A touched file makes no generation; a renamed one does, because the inputs are part of it.
    bool differs(const GenerationRow& latest, const GenerationRow& next,
                 const std::vector<InputRow>& inputs) {
        if (report_.tiles_built > 0 || latest.tiles != next.tiles || latest.digest != next.digest ||
            latest.parameters_key != next.parameters_key || latest.tile_size_m != next.tile_size_m ||
            latest.parameters != next.parameters || latest.classes != next.classes)
            return true;
        const auto before = catalog_->inputs(latest.id);
        return !std::equal(before.begin(), before.end(), inputs.begin(), inputs.end(),
                           [](const InputRow& a, const InputRow& b) {
                               return a.path == b.path && a.trajectory == b.trajectory &&
                                      a.source == b.source;
                           });
    }

    ObjectStore store_;
    TileProcessor& processor_;
    const BuildOptions& options_;
    const CancelToken& cancel_;
    Progress& progress_;
    std::optional<Catalog> catalog_;
    BuildReport report_;
    std::mutex mutex_;  ///< the report, the catalog and the batch while tiles are made
    std::vector<ProductRow> batch_;
    Clock::time_point last_batch_;
};

}  // namespace

const char* text_of(Reason reason) {
    switch (reason) {
        case Reason::new_tile:
            return "new source";
        case Reason::changed_core:
            return "changed core";
        case Reason::changed_halo:
            return "changed halo";
        case Reason::parameters:
            return "parameters";
        case Reason::algorithm:
            return "algorithm version";
        case Reason::missing_object:
            return "missing object";
        case Reason::split:
            return "other grid";
    }
    return "";
}

BuildReport build_city(const std::filesystem::path& city, TileProcessor& processor,
                       const BuildOptions& options, const CancelToken& cancel, Progress& progress) {
    return Builder(city, processor, options, cancel, progress).run();
}

}  // namespace citysplat::tiling
