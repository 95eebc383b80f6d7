#include "tiling/build/publisher.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "tiling/build/build_inputs.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/product_kinds.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <ctime>
#include <map>

namespace citysplat::tiling {

namespace {

/// What the receipts of a plan say, held against the plan.
struct Made {
    std::set<TileKey> done;
    std::map<TileKey, ProductRow> products;
    TileCosts costs;
};

class Publisher {
  public:
    Publisher(ObjectStore& store, Catalog& catalog, const OpenPlan& open)
        : store_(store),
          catalog_(catalog),
          plan_(open.plan),
          city_(store.paths().root().string()),
          folder_(store, open.name),
          next_(plan_.draft.generation),
          tiles_(plan_.draft.tiles) {}

    PublishReport run(const PublishOptions& options) {
        const auto latest = catalog_.latest();
        Made made = read_receipts();
        refuse_damaged(made);
        add_missing(made, latest, options);
        for (const auto& [tile, product] : made.products) tiles_.push_back(product);
        add_up();
        if (latest && is_published(*latest)) return closed(latest->id, true);
        if (next_.id != (latest ? latest->id : 0) + 1)
            throw ConfigError(city_ +
                              " has a newer generation than the plan was made for; run citysplat "
                              "plan again: what was built is used again");
        const std::vector<InputRow> inputs = take_sources();
        if (latest && same_tiles(*latest) && !differs(catalog_, *latest, {next_, inputs, tiles_})) {
            refresh_generation(catalog_, store_, *latest, inputs);
            return closed(latest->id, false);
        }
        report_.plan = folder_.plan();
        if (options.accept.empty() && (report_.held_back = ask(inputs, options))) {
            folder_.hold(*report_.held_back);
            report_.generation = latest ? latest->id : 0;
            return std::move(report_);
        }
        if (!tiles_.empty()) catalog_.add_products(tiles_);
        const std::int64_t id = publish_generation(catalog_, store_, next_, inputs, tiles_);
        keep_costs(store_.paths(), made.costs);
        return closed(id, true);
    }

  private:
    Made read_receipts() {
        std::set<TileKey> planned;
        for (const PlannedTile& tile : plan_.planned) planned.insert(tile.key);
        Made made;
        folder_.read_receipts([&](const ReceiptRecord& receipt) {
            for (const TileKey& tile : receipt.done)
                if (planned.contains(tile)) made.done.insert(tile);
            for (const ProductRow& product : receipt.made) {
                if (!std::binary_search(receipt.done.begin(), receipt.done.end(), product.tile) ||
                    !planned.contains(product.tile))
                    throw CorruptionError(city_ + ": a receipt holds tile " + product.tile.text() +
                                          " that was not planned; run citysplat plan again");
                const auto [at, is_new] = made.products.emplace(product.tile, product);
                if (!is_new && (at->second.key != product.key || at->second.digest != product.digest))
                    throw CorruptionError(city_ + ": two workers made different tiles " +
                                          product.tile.text() +
                                          " of the same points; use one version of the program for all "
                                          "workers and run citysplat plan again");
            }
            made.costs.core_seconds += receipt.costs.core_seconds;
            made.costs.points += receipt.costs.points;
            made.costs.bytes += receipt.costs.bytes;
        });
        return made;
    }

    /// Payloads that are gone or cut off are made again by the next worker.
    void refuse_damaged(const Made& made) {
        std::set<TileKey> damaged;
        for (const auto& [tile, product] : made.products)
            if (!payload_fits(store_, product)) damaged.insert(tile);
        if (!damaged.empty()) {
            folder_.void_receipts(damaged);
            throw BusyError(city_ + ": tile " + damaged.begin()->text() +
                            (damaged.size() > 1 ? " and others are" : " is") +
                            " missing or damaged; citysplat work makes them again");
        }
        for (const ProductRow& tile : plan_.draft.tiles)
            if (!payload_fits(store_, tile))
                throw CorruptionError("tile " + tile.tile.text() +
                                      " of the city is missing or damaged; run citysplat plan again");
    }

    void add_missing(Made& made, const std::optional<GenerationRow>& latest, const PublishOptions& options) {
        std::vector<const PlannedTile*> missing;
        for (const PlannedTile& tile : plan_.planned)
            if (!made.done.contains(tile.key)) missing.push_back(&tile);
        if (missing.empty()) return;
        std::map<TileKey, std::string> why;
        for (const FailedTile& failed : folder_.failures())
            why[failed.tile] = "on " + failed.host + ": " + failed.message;
        std::string failed_text;
        std::uint64_t open = 0, failed = 0;
        for (const PlannedTile* tile : missing) {
            const auto found = why.find(tile->key);
            if (found == why.end()) {
                ++open;
            } else if (options.keep_old_for_failed && latest && tile->previous &&
                       payload_fits(store_, *tile->previous)) {
                made.products.emplace(tile->key, *tile->previous);
                report_.kept_old.push_back({tile->key, found->second});
            } else if (++failed <= 10) {
                failed_text += "\n  tile " + tile->key.text() + " failed " + found->second;
            }
        }
        if (open > 0)
            throw BusyError(city_ + ": " + format_count(open) + " of " + format_count(plan_.planned.size()) +
                            " planned tiles are not made yet; publish again when citysplat work has ended");
        if (failed > 0)
            throw Error(
                ErrorKind::bad_data,
                city_ + ": " + format_count(failed) +
                    " tiles could not be made, and nothing was published; --keep-old-for-failed takes "
                    "those of the latest generation where it has them" +
                    failed_text);
    }

    void add_up() {
        if (!report_.kept_old.empty()) {
            std::vector<KindKey> kinds = kinds_of(next_);
            for (KindKey& kind : kinds) kind.parameters_key = key_with_old_tiles(kind.parameters_key);
            next_.parameters_key = key_with_old_tiles(next_.parameters_key);
            next_.products = products_text(kinds);
        }
        tiling::add_up(next_, tiles_);
        next_.created_s = static_cast<std::int64_t>(std::time(nullptr));
        report_.tiles = next_.tiles;
        report_.splats = next_.splats;
        report_.triangles = next_.triangles;
        report_.digest = next_.digest;
    }

    /// A publish that was killed before it closed the plan.
    bool is_published(const GenerationRow& latest) const {
        return latest.id == next_.id && latest.digest == next_.digest && latest.tiles == next_.tiles &&
               latest.parameters_key == next_.parameters_key && latest.parameters == next_.parameters;
    }

    bool same_tiles(const GenerationRow& latest) {
        std::vector<ProductRow> before = catalog_.tiles(latest.id);
        sort_by_tile(tiles_);
        sort_by_tile(before);
        return std::equal(before.begin(), before.end(), tiles_.begin(), tiles_.end(),
                          [](const ProductRow& a, const ProductRow& b) {
                              return a.tile == b.tile && a.key == b.key && a.object == b.object;
                          });
    }

    /// The inputs of the plan, with the numbers that their sources have in the catalog now.
    std::vector<InputRow> take_sources() {
        std::map<Hash128, const CitySource*> planned;
        for (const CitySource& source : plan_.sources) planned.emplace(source.row.identity, &source);
        std::vector<InputRow> inputs;
        for (const auto& [row, identity] : plan_.draft.inputs) {
            inputs.push_back(row);
            if (const auto known = catalog_.find_source(identity)) {
                inputs.back().source = known->id;
                continue;
            }
            const auto found = planned.find(identity);
            if (found == planned.end() || !store_.size_of(found->second->row.object))
                throw CorruptionError(row.path + ": its points are gone; run citysplat plan again");
            inputs.back().source = catalog_.add_sources(std::span(found->second, 1))[0];
        }
        return inputs;
    }

    std::optional<std::string> ask(const std::vector<InputRow>& inputs, const PublishOptions& options) {
        if (options.gate && next_.findings_of != next_.id)
            throw UsageError(city_ + ": nobody measured what the gate asks about; give it to plan, too");
        GateAnswer answer = ask_gates({catalog_, store_}, {next_, inputs, tiles_},
                                      {options.gate, options.gates}, report_.kept_old.size());
        report_.gates = std::move(answer.results);
        return std::move(answer.objection);
    }

    PublishReport closed(std::int64_t generation, bool published) {
        close_plan(store_.paths());
        report_.generation = generation;
        report_.published = published;
        return std::move(report_);
    }

    ObjectStore& store_;
    Catalog& catalog_;
    const PlanRecord& plan_;
    const std::string city_;
    PlanFolder folder_;
    GenerationRow next_;
    std::vector<ProductRow> tiles_;
    PublishReport report_;
};

/// Throws UsageError unless this is the plan that somebody looked at.
void check_accepted(const std::filesystem::path& city, const std::optional<OpenPlan>& open,
                    const std::string& accept) {
    constexpr std::size_t kFewestDigits = 8;
    if (!open) throw UsageError("--accept " + accept + ": no plan of " + city.string() + " is held back");
    if (accept.size() < kFewestDigits || !open->name.hex().starts_with(accept))
        throw UsageError("--accept " + accept + ": the plan of " + city.string() + " that is open is " +
                         open->name.hex().substr(0, 12) + "; look at that one first");
}

}  // namespace

GateAnswer ask_gates(const OpenCity& city, const NextGeneration& next, const Gates& gates,
                     std::uint64_t tiles_failed) {
    GateAnswer answer;
    if ((gates.findings || !gates.others.empty()) && !has_kind(next.row, ProductKind::splats))
        throw UsageError(city.store.paths().root().string() +
                         ": gates are about splats, and this city is to have none; build it with "
                         "--product splats,mesh, or leave out the gates");
    if (gates.findings) answer.objection = gates.findings(next.row.findings);
    const auto latest = city.catalog.latest();
    if (!latest || gates.others.empty()) return answer;
    Candidate candidate{
        .store = city.store,
        .before = *latest,
        .tiles_before = of_kind(city.catalog.tiles(latest->id), ProductKind::splats),
        .next = next.row,
        .tiles = of_kind(next.tiles, ProductKind::splats),
        .new_sources = sources_added(sources_of(city.catalog, city.catalog.inputs(latest->id)),
                                     sources_of(city.catalog, next.inputs)),
        .tiles_failed = tiles_failed};
    sort_by_tile(candidate.tiles);
    std::string text = answer.objection.value_or("");
    for (const CandidateGate& gate : gates.others) {
        const GateResult& result = answer.results.emplace_back(gate(candidate));
        if (result.holds()) text += (text.empty() ? "" : "; and ") + result.text;
    }
    if (!text.empty()) answer.objection = text;
    return answer;
}

bool differs(Catalog& catalog, const GenerationRow& latest, const NextGeneration& next) {
    const GenerationRow& row = next.row;
    Hash128 digest;
    for (const ProductRow& tile : next.tiles) digest += tile.digest;
    if (latest.tiles != next.tiles.size() || latest.digest != digest ||
        latest.parameters_key != row.parameters_key || latest.products != row.products ||
        latest.tile_size_m != row.tile_size_m || latest.parameters != row.parameters ||
        latest.classes != row.classes || !(latest.measured == row.measured) ||
        latest.findings != row.findings)
        return true;
    const auto before = catalog.inputs(latest.id);
    return !std::equal(before.begin(), before.end(), next.inputs.begin(), next.inputs.end(),
                       [](const InputRow& a, const InputRow& b) {
                           return a.path == b.path && a.trajectory == b.trajectory &&
                                  a.reading == b.reading && a.source == b.source;
                       });
}

Hash128 key_with_old_tiles(const Hash128& parameters_key) {
    return Hasher().text("older tiles").hash(parameters_key).finish();
}

PublishReport publish_plan(const std::filesystem::path& city, const PublishOptions& options) {
    ObjectStore store{CityPaths(city)};
    require_city(store.paths());
    const CityLock lock = CityLock::builder(store.paths(), "publish");
    store.create_layout();
    const auto open = read_open_plan(store);
    Catalog catalog = Catalog::open_to_write(store.paths().catalog());
    if (!options.accept.empty()) check_accepted(city, open, options.accept);
    if (open) return Publisher(store, catalog, *open).run(options);
    const auto latest = catalog.latest();
    if (!latest) throw ConfigError(city.string() + ": nothing is planned; run citysplat plan first");
    PublishReport report;
    report.generation = latest->id;
    report.tiles = latest->tiles, report.splats = latest->splats;
    report.triangles = latest->triangles, report.digest = latest->digest;
    return report;
}

}  // namespace citysplat::tiling
