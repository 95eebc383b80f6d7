#include "citysplat/viewing/catalog_facts.hpp"

#include "citysplat/context.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "model/tile_grid.hpp"
#include "tiling/points/city_points.hpp"
#include "tiling/points/source_survey.hpp"
#include "tiling/sector.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/product_kinds.hpp"
#include "tiling/store/splat_payload.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace citysplat::cli {

namespace {

/// The sectors of 64 m in which a source has points; each source is asked once.
class SectorsOfSources {
  public:
    explicit SectorsOfSources(tiling::Catalog& catalog) : catalog_(catalog) {}
    const std::vector<tiling::Sector>& of(std::int64_t source) {
        const auto [at, is_new] = known_.try_emplace(source);
        if (is_new)
            for (const tiling::SegmentRow& segment : catalog_.segments(source))
                at->second.push_back({segment.sector_x, segment.sector_y});
        return at->second;
    }

  private:
    tiling::Catalog& catalog_;
    std::map<std::int64_t, std::vector<tiling::Sector>> known_;
};

/// Which inputs have points in which sectors.
class SourceMap {
  public:
    SourceMap(SectorsOfSources& sectors, const std::vector<tiling::InputRow>& inputs) {
        std::map<std::int64_t, std::vector<std::size_t>> inputs_of;
        for (std::size_t i = 0; i < inputs.size(); ++i) inputs_of[inputs[i].source].push_back(i);
        for (const auto& [source, of] : inputs_of)
            for (const tiling::Sector& sector : sectors.of(source))
                sectors_[sector].insert(of.begin(), of.end());
    }
    /// Those of the sectors that a box touches.
    std::vector<std::size_t> below(const LatticeBox& core) const {
        std::set<std::size_t> found;
        const auto sector = [](std::int64_t steps) {
            return static_cast<std::int32_t>(steps >> tiling::kSectorShift);
        };
        for (std::int32_t x = sector(core.min_x); x <= sector(core.max_x - 1); ++x)
            for (std::int32_t y = sector(core.min_y); y <= sector(core.max_y - 1); ++y)
                if (const auto at = sectors_.find({x, y}); at != sectors_.end())
                    found.insert(at->second.begin(), at->second.end());
        return {found.begin(), found.end()};
    }

  private:
    std::map<tiling::Sector, std::set<std::size_t>> sectors_;
};

/// The first generation in which each product stood.
std::map<std::int64_t, std::int64_t> births(tiling::Catalog& catalog, std::int64_t shown) {
    std::map<std::int64_t, std::int64_t> born;
    std::set<std::int64_t> numbers;
    for (const tiling::GenerationRow& g : catalog.history())
        if (g.id <= shown) numbers.insert(g.id);
    for (const std::int64_t number : numbers)
        for (const tiling::ProductRow& product : catalog.tiles(number)) born.emplace(product.id, number);
    return born;
}

std::vector<view::GenerationFacts> history_of(tiling::Catalog& catalog) {
    std::vector<view::GenerationFacts> history;
    for (const tiling::GenerationRow& row : catalog.history())
        history.push_back({row.id, utc_text(row.created_s), row.note});
    std::sort(history.begin(), history.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    return history;
}

/// A generation and what it was made from.
struct Made {
    tiling::GenerationRow row;
    std::vector<tiling::InputRow> inputs;
    SourceMap sources;

    Made(tiling::Catalog& catalog, SectorsOfSources& sectors, const tiling::GenerationRow& g)
        : row(g), inputs(catalog.inputs(g.id)), sources(sectors, inputs) {}
};

/// Why the builds made their tiles: found by comparing each generation with the one before it that is still
/// retained.
class Reasons {
  public:
    Reasons(tiling::Catalog& catalog, SectorsOfSources& sectors) : catalog_(catalog), sectors_(sectors) {
        for (const tiling::GenerationRow& g : catalog.history()) rows_.emplace(g.id, g);
    }

    std::string why(const tiling::ProductRow& product, std::int64_t born) {
        const auto now = rows_.find(born);
        if (now == rows_.end() || now == rows_.begin()) return "the first build that is retained";
        const Made &after = made(now->second), &before = made(std::prev(now)->second);
        const LatticeBox around = TileGrid(static_cast<double>(after.row.tile_size_m))
                                      .core(product.tile)
                                      .widened(product.halo_steps);
        const std::string added = only_in(after, before, around), removed = only_in(before, after, around);
        std::string words;
        if (!added.empty()) words += "new points of " + added;
        if (!removed.empty()) words += (words.empty() ? "" : ", ") + ("without " + removed);
        if (!words.empty()) return words;
        if (before.row.tile_size_m != after.row.tile_size_m) return "another tile size";
        if (before.row.parameters_key != after.row.parameters_key) return "other parameters";
        return "something else that it depends on has changed";
    }

  private:
    const Made& made(const tiling::GenerationRow& row) {
        const auto known = made_.find(row.id);
        return known != made_.end() ? known->second
                                    : made_.emplace(row.id, Made(catalog_, sectors_, row)).first->second;
    }
    /// Names of the first few inputs with points in a box that another generation does not have.
    static std::string only_in(const Made& one, const Made& other, const LatticeBox& box) {
        std::set<std::int64_t> known;
        for (const tiling::InputRow& input : other.inputs) known.insert(input.source);
        std::vector<std::string> names;
        for (const std::size_t i : one.sources.below(box))
            if (!known.contains(one.inputs[i].source))
                names.push_back(std::filesystem::path(one.inputs[i].path).filename().string());
        constexpr std::size_t kMostNames = 3;
        std::string text;
        for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
            text += (i > 0 ? ", " : "") + names[i];
        if (names.size() > kMostNames) text += " and " + std::to_string(names.size() - kMostNames) + " more";
        return text;
    }

    tiling::Catalog& catalog_;
    SectorsOfSources& sectors_;
    std::map<std::int64_t, tiling::GenerationRow> rows_;
    std::map<std::int64_t, Made> made_;  ///< those that were asked for
};

/// Answers from the archives of the points.
class CityProvenance final : public view::Provenance {
  public:
    CityProvenance(tiling::CityPaths paths, std::vector<tiling::CitySource> sources,
                   const std::vector<tiling::InputRow>& inputs)
        : survey_(std::move(paths), std::move(sources)) {
        // Of inputs with the same points the first is named.
        for (const tiling::CitySource& source : survey_.sources()) {
            const auto found = std::find_if(inputs.begin(), inputs.end(),
                                            [&](const auto& input) { return input.source == source.row.id; });
            input_of_.push_back(static_cast<std::size_t>(found - inputs.begin()));
        }
    }

    std::vector<Square> squares() const override {
        std::vector<Square> squares;
        for (const tiling::Sector& sector : survey_.sectors()) {
            Square& square = squares.emplace_back(Square{sector.x, sector.y, {}});
            square.inputs.fill(kUnknown);
            std::array<std::uint32_t, tiling::kCellsPerSector> most{};
            std::vector<tiling::SourceSurvey::CellCount> cells;
            try {
                cells = survey_.cells(sector);
            } catch (const Error&) {
                continue;  // a damaged archive: nobody knows
            }
            for (const auto& cell : cells) {
                const auto place = static_cast<std::size_t>(cell.cell % tiling::kCellsPerSide * kCellsAcross +
                                                            cell.cell / tiling::kCellsPerSide);
                const std::size_t input = input_of_[cell.source];
                const bool wins =
                    cell.points > most[place] || (cell.points == most[place] && input < square.inputs[place]);
                if (!wins || input >= kUnknown) continue;
                most[place] = cell.points;
                square.inputs[place] = static_cast<std::uint16_t>(input);
            }
        }
        return squares;
    }

    std::vector<InputPoints> around(Vec3d centre, double radius_m) const override {
        const auto counts = survey_.within({to_lattice(centre.x), to_lattice(centre.y), to_lattice(centre.z)},
                                           to_lattice(radius_m));
        std::vector<InputPoints> found;
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (counts[i] > 0) found.push_back({input_of_[i], counts[i]});
        std::sort(found.begin(), found.end(), [](const InputPoints& a, const InputPoints& b) {
            return a.points != b.points ? a.points > b.points : a.input < b.input;
        });
        return found;
    }

  private:
    static_assert(kCellsAcross == tiling::kCellsPerSide);

    tiling::SourceSurvey survey_;
    std::vector<std::size_t> input_of_;  ///< of each source
};

}  // namespace

view::CityFacts facts_of(const std::string& city, const tiling::GenerationRow& g) {
    const tiling::CityPaths paths(city);
    const tiling::ObjectStore store(paths);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const std::vector<tiling::InputRow> inputs = catalog.inputs(g.id);
    SectorsOfSources sectors(catalog);
    const SourceMap sources(sectors, inputs);
    const auto born = births(catalog, g.id);
    Reasons reasons(catalog, sectors);
    const TileGrid grid(static_cast<double>(g.tile_size_m));

    view::CityFacts facts;
    facts.name = std::filesystem::path(city).lexically_normal().filename().string();
    facts.generation = g.id;
    facts.created = utc_text(g.created_s);
    facts.note = g.note;
    facts.digest = g.digest.hex();
    facts.points = g.points;
    facts.tile_size_m = g.tile_size_m;
    for (const tiling::InputRow& input : inputs) facts.inputs.push_back(input.path);
    facts.history = history_of(catalog);
    // As the reader beside this lists them.
    for (const tiling::ProductRow& product : tiling::of_kind(catalog.tiles(g.id), ProductKind::splats)) {
        if (!product.object) continue;
        view::TileFacts tile{product.points,
                             product.removed,
                             born.at(product.id),
                             "",
                             sources.below(grid.core(product.tile)),
                             reasons.why(product, born.at(product.id)),
                             product.object->hex()};
        if (!tiling::payload_fits(store, product))
            tile.problem = "its payload is missing or damaged; citysplat repair tells what can be done";
        facts.tiles.push_back(std::move(tile));
    }
    return facts;
}

std::unique_ptr<const view::Provenance> provenance_of(const std::string& city, std::int64_t generation) {
    const tiling::CityPaths paths(city);
    tiling::Catalog catalog = tiling::Catalog::open_to_read(paths.catalog());
    const std::vector<tiling::InputRow> inputs = catalog.inputs(generation);
    return std::make_unique<CityProvenance>(paths, tiling::sources_of(catalog, inputs), inputs);
}

std::vector<view::GenerationFacts> Generations::list() const {
    tiling::Catalog catalog = tiling::Catalog::open_to_read(tiling::CityPaths(city_).catalog());
    return history_of(catalog);
}

Generations::Opened Generations::open(std::int64_t number) const {
    auto reader = std::make_unique<tiling::CityReader>(city_, number);
    view::CityFacts facts = facts_of(city_, reader->generation());
    return {std::move(reader), std::move(facts), provenance_of(city_, number)};
}

}  // namespace citysplat::cli
