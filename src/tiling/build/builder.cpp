#include "tiling/build/builder.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/crs/crs.hpp"
#include "tiling/build/build_inputs.hpp"
#include "tiling/build/build_plan.hpp"
#include "tiling/build/chunks.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/build/tile_run.hpp"
#include "tiling/carve/carved_points.hpp"
#include "tiling/carve/free_space.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/product_kinds.hpp"
#include "tiling/store/splat_payload.hpp"

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
        store_.clear_temporary(name_of_open_plan(store_.paths()) ? kLivingWorker : std::chrono::seconds{});
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
        // A generation without the tiles that were not made would have holes.
        if (report_.failures.empty() && report_.tiles_not_begun.empty()) publish(tiles);
        return std::move(report_);
    }

    PlanReport plan() {
        take_directory();
        const CityLock lock = CityLock::builder(store_.paths(), "plan");
        store_.create_layout();
        const auto before = read_open_plan(store_);
        store_.clear_temporary(before ? kLivingWorker : std::chrono::seconds{});
        open_catalog();
        if (before) adopt(*before);
        planning_ = true;
        prepare();
        PlanReport result;
        if (plan_.planned.empty() && latest_ && !next_differs(plan_.reused)) {
            refresh_generation(*catalog_, store_, *latest_, inputs_);
            close_plan(store_.paths());
            report_.generation = latest_->id;
        } else {
            PlanRecord record = make_record_of_plan();
            const bool same = before && same_work(before->plan, record);
            if (same) PlanFolder(store_, before->name).forget_failures();
            result.open = same ? std::move(*before) : open_plan(store_, std::move(record));
            result.joined = same;
        }
        result.build = std::move(report_);
        return result;
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
        } else {
            is_new_ = false;  // somebody made it between our look and our lock: a dry run must not undo it
        }
        catalog_.emplace(Catalog::open_to_write(store_.paths().catalog()));
        latest_ = catalog_->latest();
        if (latest_) check_rows(*catalog_, store_, *latest_);
        // The catalog is there: the unpack was complete.
        if (store_.paths().is_unpacking()) std::filesystem::remove(store_.paths().unpacking());
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
            report_.predicted_memory_bytes =
                std::max<std::uint64_t>(report_.predicted_memory_bytes,
                                        processor_.of(tile.key.kind).estimated_bytes(tile.points_at_most));
        refuse_full_disk();
        // Only now, because the most crowded place is known when the inputs have been read.
        if (options_.refuse_small_memory) TileRun::refuse_small_memory(plan_.planned, processor_, options_);
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
        next_.note = options_.note;
        next_.parameters = options_.parameters;
        next_.classes = options_.classes;
        next_.points = report_.points.kept;
        next_.tile_size_m = options_.tile_size_m != 0 ? options_.tile_size_m
                            : latest_                 ? latest_->tile_size_m
                                                      : kDefaultTileSize_m;
        agree_on_crs();
        report_.crs = next_.crs;
    }

    /// Sources that earlier versions read do not always know the system that was assigned to them.
    std::string crs_of(const InputRow& input) {
        const std::string crs = catalog_->source(input.source).crs;
        if (!crs.empty()) return crs;
        const ReadOptions how = io::read_options_from(input.reading);
        return how.to_crs.empty() ? how.crs : std::string();
    }

    /// One coordinate system for all inputs, or none for all. Throws ConfigError naming the one that differs.
    void agree_on_crs() {
        const InputRow* unknown = nullptr;
        const Transaction reading = catalog_->reading();
        for (const InputRow& input : inputs_) {
            const std::string crs = crs_of(input);
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
             (options_.gate && (planning_ || !findings_are_of_these_points())))) {
            next_.measured = processor_.calibrate(*points_, cancel_, progress_);
            if (first || options_.recalibrate) next_.calibration = next_.measured;
            if (first || planning_ || !findings_are_of_these_points()) next_.findings_of = next_.id;
            next_.findings = processor_.findings();
        }
        processor_.set_calibration(next_.calibration);
        const auto key_of = [this](const TileProcessor& processor) {
            const Hash128 key = processor.parameters_key();
            return options_.carve ? FreeSpace::carved_key(key) : key;
        };
        next_.parameters_key = key_of(processor_);
        kinds_.clear();
        for (const ProductKind kind : processor_.kinds())
            kinds_.push_back({kind, key_of(processor_.of(kind))});
        next_.products = products_text(kinds_);
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
        std::set<Sector> changed;
        std::vector<ProductRow> before;
        if (latest_) {
            before = catalog_->tiles(latest_->id);
            const auto sources = sources_of(*catalog_, catalog_->inputs(latest_->id));
            const auto hashes = options_.carve ? content_and_ray_hashes : content_hashes;
            changed = changed_sectors(hashes(sources), hashes(points_->sources()));
        }
        BuildPlan plan;
        for (const KindKey& kind : kinds_) plan.add(plan_kind(kind, changed, before));
        return plan;
    }

    BuildPlan plan_kind(const KindKey& kind, const std::set<Sector>& changed,
                        const std::vector<ProductRow>& before) {
        PlanInput input{.kind = kind.kind,
                        .grid = *grid_,
                        .points = *points_,
                        .processor = processor_.of(kind.kind),
                        .store = store_,
                        .worker_bytes = TileRun::worker_bytes(options_),
                        .most_tile_points = options_.most_tile_points,
                        .changed = changed,
                        .before = {},
                        .all_because = Reason::new_tile,
                        .margin_steps = options_.carve ? FreeSpace::kMarginSteps : 0};
        if (latest_) {
            input.all_because = why_all(kind);
            if (input.all_because != Reason::split) input.before = of_kind(before, kind.kind);
        }
        return make_plan(input);
    }

    /// What concerns every tile of a kind.
    std::optional<Reason> why_all(const KindKey& kind) const {
        if (latest_->tile_size_m != next_.tile_size_m) return Reason::split;
        const std::vector<KindKey> had = kinds_of(*latest_);
        if (std::find(had.begin(), had.end(), kind) != had.end()) return std::nullopt;
        if (std::find(had.begin(), had.end(), KindKey{kind.kind, key_with_old_tiles(kind.parameters_key)}) !=
            had.end())
            return Reason::new_tile;
        if (!has_kind(*latest_, kind.kind)) return Reason::new_product;
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

    /// Makes the catalog remember what the workers of an earlier plan have finished.
    void adopt(const OpenPlan& before) {
        PlanFolder folder(store_, before.name);
        folder.read_receipts([this](const ReceiptRecord& receipt) {
            std::vector<ProductRow> whole;
            for (const ProductRow& product : receipt.made)
                if (payload_fits(store_, product)) whole.push_back(product);
            if (!whole.empty()) catalog_->add_products(whole);
        });
    }

    PlanRecord make_record_of_plan() {
        PlanRecord record;
        record.request = request_of(options_);
        record.created_s = static_cast<std::int64_t>(std::time(nullptr));
        record.draft = make_record(*catalog_, next_, inputs_, plan_.reused);
        record.carve = options_.carve;
        record.sources = points_->sources();
        record.costs = read_costs(store_.paths());
        record.planned = std::move(plan_.planned);
        divide_into_chunks(record);
        std::set<TileKey> planned;
        for (const PlannedTile& tile : record.planned) planned.insert(tile.key);
        for (ProductRow& product : catalog_->products())
            if (planned.contains(product.tile)) record.memo.push_back(std::move(product));
        return record;
    }

    void publish(const std::vector<ProductRow>& tiles) {
        const auto begin = Clock::now();
        add_up(next_, tiles);
        // Every kind leaves out the same points.
        for (const ProductRow& tile : tiles)
            if (tile.tile.kind == kinds_.front().kind) report_.removed += tile.removed;
        next_.created_s = static_cast<std::int64_t>(std::time(nullptr));
        report_.tiles_total = tiles.size();
        report_.splats = next_.splats;
        report_.triangles = next_.triangles;
        report_.digest = next_.digest;
        if (latest_ && report_.tiles_built == 0 && !next_differs(tiles)) {
            report_.generation = latest_->id;
            refresh_generation(*catalog_, store_, *latest_, inputs_);
        } else if ((report_.held_back = ask(tiles))) {
            report_.generation = latest_ ? latest_->id : 0;
        } else {
            report_.generation = publish_generation(*catalog_, store_, next_, inputs_, tiles);
            report_.published = true;
        }
        report_.publish_s = seconds_since(begin);
    }

    /// What keeps this from being published.
    std::optional<std::string> ask(const std::vector<ProductRow>& tiles) {
        GateAnswer answer =
            ask_gates({*catalog_, store_}, {next_, inputs_, tiles}, {options_.gate, options_.gates}, 0);
        report_.gates = std::move(answer.results);
        return std::move(answer.objection);
    }

    bool next_differs(const std::vector<ProductRow>& tiles) {
        return differs(*catalog_, *latest_, {next_, inputs_, tiles});
    }

    ObjectStore store_;
    bool is_new_ = false, planning_ = false;
    TileProcessor& processor_;
    const BuildOptions& options_;
    const CancelToken& cancel_;
    Progress& progress_;
    BuildReport report_;
    std::optional<Catalog> catalog_;
    std::optional<GenerationRow> latest_;
    GenerationRow next_;
    std::vector<KindKey> kinds_;  ///< that the city is to have
    std::vector<InputRow> inputs_;
    std::optional<CityPoints> points_;
    std::optional<TileGrid> grid_;
    BuildPlan plan_;
};

}  // namespace

BuildReport build_city(const std::filesystem::path& city, TileProcessor& processor,
                       const BuildOptions& options, const CancelToken& cancel, Progress& progress) {
    return Builder(city, processor, options, cancel, progress).run();
}

PlanReport plan_city(const std::filesystem::path& city, TileProcessor& processor, const BuildOptions& options,
                     const CancelToken& cancel, Progress& progress) {
    return Builder(city, processor, options, cancel, progress).plan();
}

PlanReport join_or_plan(const std::filesystem::path& city, TileProcessor& processor,
                        const BuildOptions& options, const CancelToken& cancel, Progress& progress) {
    const ObjectStore store{CityPaths(city)};
    const CityState state = state_of(store.paths());
    if (state != CityState::city && state != CityState::layout && state != CityState::nothing)
        return plan_city(city, processor, options, cancel, progress);  // which says what is wrong
    create_directories_durably(city);
    const CityLock turn = CityLock::staging(store.paths(), cancel);
    if (store.paths().is_city())
        if (auto open = read_open_plan(store); open && open->plan.request == request_of(options)) {
            const auto latest = Catalog::open_to_read(store.paths().catalog()).latest();
            if (open->plan.draft.generation.id == (latest ? latest->id : 0) + 1) {
                PlanReport joined;
                joined.open = std::move(*open);
                joined.joined = true;
                return joined;
            }
        }
    return plan_city(city, processor, options, cancel, progress);
}

}  // namespace citysplat::tiling
