#include "tiling/points/city_points.hpp"

#include "core/error.hpp"
#include "tiling/points/canonical_order.hpp"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <limits>
#include <set>

namespace citysplat::tiling {

namespace {

/// Of tables that are kept: 8 MB.
constexpr std::size_t kMostTableSpans = std::size_t{1} << 18;
/// Heights of frames are multiples of this, so that a few more points do not move a frame.
constexpr std::int64_t kFrameStep_m = 64;

bool inside(const LatticeBox& inner, const LatticeBox& outer) {
    return inner.min_x >= outer.min_x && inner.max_x <= outer.max_x && inner.min_y >= outer.min_y &&
           inner.max_y <= outer.max_y;
}

/// Calls visit(sector) for every sector that a box touches, along y first.
template <class Visit>
void for_sectors(const LatticeBox& box, const Visit& visit) {
    for (std::int32_t x = sector_index(box.min_x); x <= sector_index(box.max_x - 1); ++x)
        for (std::int32_t y = sector_index(box.min_y); y <= sector_index(box.max_y - 1); ++y)
            visit(Sector{x, y});
}

/// Height of the frame: below the median of the core's points, which no outlier moves. Depends on the core
/// alone, not on the halo.
std::int64_t frame_height_m(const Region& region) {
    std::vector<std::int32_t> heights;
    const LatticePoint origin = region.frame.origin();
    for (const TilePoint& p : region.points)
        if (region.core.contains(origin.x + p.x, origin.y + p.y)) heights.push_back(p.z);
    if (heights.empty()) return 0;
    const auto middle = heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 2);
    std::nth_element(heights.begin(), middle, heights.end());
    return floor_div(*middle, kFrameStep_m * kLatticePerMetre) * kFrameStep_m;
}

}  // namespace

std::vector<CitySource> sources_of(Catalog& catalog, const std::vector<InputRow>& inputs) {
    std::set<std::int64_t> ids;
    for (const InputRow& input : inputs) ids.insert(input.source);
    std::vector<CitySource> sources;
    const Transaction reading = catalog.reading();
    for (const std::int64_t id : ids) {
        CitySource& source = sources.emplace_back();
        source.row = catalog.source(id);
        source.segments = catalog.segments(id);
    }
    return sources;
}

CityPoints::CityPoints(const ObjectStore& store, std::vector<CitySource> sources)
    : sources_(std::move(sources)),
      // The other half is for objects that are being written.
      archives_(store, "the point archive of a source", descriptor_budget() / 2) {
    bool first = true;
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
        const SourceRow& row = sources_[s].row;
        total_points_ += row.counts.accepted();
        if (row.counts.kept == 0) continue;
        const LatticeBox &b = row.bounds, &all = bounds_;
        bounds_ = first ? b
                        : LatticeBox{std::min(all.min_x, b.min_x), std::min(all.min_y, b.min_y),
                                     std::max(all.max_x, b.max_x), std::max(all.max_y, b.max_y)};
        first = false;
        for (const SegmentRow& segment : sources_[s].segments)
            parts_.push_back({{segment.sector_x, segment.sector_y}, s, segment});
    }
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
        return a.sector != b.sector ? a.sector < b.sector : a.segment.hash < b.segment.hash;
    });
    quarantine_far_outliers();
    for (auto part = parts_.begin(); part != parts_.end();) {
        const Sector sector = part->sector;
        Hasher hasher;
        // Two sources may bring the same points: the union is what counts.
        const Hash128* before = nullptr;
        for (; part != parts_.end() && part->sector == sector; ++part) {
            if (!before || *before != part->segment.hash) hasher.hash(part->segment.hash);
            before = &part->segment.hash;
        }
        sector_hashes_.emplace_hint(sector_hashes_.end(), sector, hasher.finish());
    }
}

void CityPoints::quarantine_far_outliers() {
    std::map<Sector, std::uint64_t> counts;
    for (const Part& part : parts_) counts[part.sector] += part.segment.accepted;
    const auto is_far = [&](const Sector& sector) {
        std::uint64_t around = 0;
        for (std::int32_t x = sector.x - 1; x <= sector.x + 1; ++x)
            for (std::int32_t y = sector.y - 1; y <= sector.y + 1; ++y)
                if (const auto found = counts.find({x, y}); found != counts.end()) around += found->second;
        return around < kFewestPointsAround;
    };
    std::erase_if(parts_, [&](const Part& part) {
        if (counts.at(part.sector) >= kFewestPointsAround || !is_far(part.sector)) return false;
        quarantined_points_ += part.segment.points;
        return true;
    });
}

std::span<const CityPoints::Part> CityPoints::parts_of(const Sector& sector) const {
    const auto begin = std::lower_bound(parts_.begin(), parts_.end(), sector,
                                        [](const Part& p, const Sector& s) { return p.sector < s; });
    auto end = begin;
    while (end != parts_.end() && end->sector == sector) ++end;
    return {begin, end};
}

std::string CityPoints::name(const Part& part) const {
    return "archive " + sources_[part.source].row.object.hex() + ", sector " + std::to_string(part.sector.x) +
           "/" + std::to_string(part.sector.y);
}

std::shared_ptr<const CityPoints::CellTables> CityPoints::tables_of(const Sector& sector) const {
    {
        const std::lock_guard lock(tables_mutex_);
        if (const auto found = tables_.find(sector); found != tables_.end()) return found->second;
    }
    auto tables = std::make_shared<CellTables>();
    std::size_t spans = 0;
    for (const Part& part : parts_of(sector)) {
        const auto file = archives_.open(sources_[part.source].row.object);
        tables->push_back(read_cells(*file, part.segment, name(part)));
        spans += tables->back().size();
    }
    const std::lock_guard lock(tables_mutex_);
    if (table_spans_ + spans > kMostTableSpans) tables_.clear(), table_spans_ = 0;
    if (spans <= kMostTableSpans && tables_.emplace(sector, tables).second) table_spans_ += spans;
    return tables;
}

std::uint64_t CityPoints::count_at_most(const LatticeBox& box) const {
    std::uint64_t count = 0;
    for_sectors(box, [&](const Sector& sector) {
        if (inside(sector.box(), box)) {
            for (const Part& part : parts_of(sector)) count += part.segment.points;
            return;
        }
        for (const auto& cells : *tables_of(sector))
            for (const CellSpan& cell : cells)
                if (cell_box(sector, cell.cell).intersects(box)) count += cell.points;
    });
    return count;
}

std::vector<Sector> CityPoints::occupied_sectors() const {
    std::vector<Sector> sectors;
    for (const auto& [sector, hash] : sector_hashes_) sectors.push_back(sector);
    return sectors;
}

std::vector<int> CityPoints::occupied_cells(const Sector& sector) const {
    std::bitset<kCellsPerSector> occupied;
    for (const auto& spans : *tables_of(sector))
        for (const CellSpan& cell : spans) occupied.set(static_cast<std::size_t>(cell.cell));
    std::vector<int> cells;
    for (int cell = 0; cell < kCellsPerSector; ++cell)
        if (occupied.test(static_cast<std::size_t>(cell))) cells.push_back(cell);
    return cells;
}

Region CityPoints::read(const LatticeBox& core, std::int64_t halo_steps) const {
    Region region{
        .frame = {floor_div(core.min_x, kLatticePerMetre), floor_div(core.min_y, kLatticePerMetre), 0},
        .core = core,
        .covered = core.widened(halo_steps),
        .points = {}};
    const LatticeBox& box = region.covered;
    std::vector<PartCells> parts;
    std::uint64_t at_most = 0;
    for_sectors(box, [&](const Sector& sector) {
        const auto tables = tables_of(sector);
        const std::span<const Part> of_sector = parts_of(sector);
        for (std::size_t i = 0; i < of_sector.size(); ++i) {
            std::vector<CellSpan> cells;
            std::copy_if((*tables)[i].begin(), (*tables)[i].end(), std::back_inserter(cells),
                         [&](const CellSpan& c) { return cell_box(sector, c.cell).intersects(box); });
            for (const CellSpan& cell : cells) at_most += cell.points;
            if (!cells.empty()) parts.push_back({&of_sector[i], std::move(cells)});
        }
    });
    region.points.reserve(at_most);
    for (std::size_t begin = 0; begin < parts.size();) {
        const std::int32_t x = parts[begin].part->sector.x;
        std::size_t end = begin;
        while (end < parts.size() && parts[end].part->sector.x == x) ++end;
        const auto strip = std::span<const PartCells>(parts).subspan(begin, end - begin);
        for (int column = 0; column < kCellsPerSide; ++column) read_column(strip, column, box, region);
        begin = end;
    }
    region.frame.z_m = frame_height_m(region);
    const auto z0 = static_cast<std::int32_t>(region.frame.origin().z);
    for (TilePoint& p : region.points) p.z -= z0;
    return region;
}

void CityPoints::read_column(std::span<const PartCells> parts, int column, const LatticeBox& box,
                             Region& region) const {
    const LatticePoint origin = region.frame.origin();
    const std::size_t begin = region.points.size();
    std::vector<std::byte> bytes;
    for (const auto& [part, cells] : parts) {
        const Sector sector = part->sector;
        const auto in_column = [&](const CellSpan& c) { return c.cell / kCellsPerSide == column; };
        auto cell = std::find_if(cells.begin(), cells.end(), in_column);
        const auto last = std::find_if_not(cell, cells.end(), in_column);
        if (cell == last) continue;
        const std::uint64_t offset = cell->offset;
        bytes.resize((last - 1)->offset + (last - 1)->bytes - offset);
        archives_.open(sources_[part->source].row.object)->read_at(offset, bytes);
        const auto dx = static_cast<std::int32_t>(sector.origin_x() - origin.x);
        const auto dy = static_cast<std::int32_t>(sector.origin_y() - origin.y);
        for (; cell != last; ++cell) {
            const std::size_t at = region.points.size();
            decode_cell(std::span(bytes).subspan(cell->offset - offset, cell->bytes), *cell, region.points,
                        name(*part));
            for (std::size_t i = at; i < region.points.size(); ++i) {
                region.points[i].x += dx;
                region.points[i].y += dy;
            }
            if (inside(cell_box(sector, cell->cell), box)) continue;
            const auto outside = [&](const TilePoint& p) {
                return !box.contains(origin.x + p.x, origin.y + p.y);
            };
            region.points.erase(std::remove_if(region.points.begin() + static_cast<std::ptrdiff_t>(at),
                                               region.points.end(), outside),
                                region.points.end());
        }
    }
    if (region.points.size() == begin) return;
    const std::int64_t x_min = parts.front().part->sector.origin_x() + column * kCellSteps - origin.x;
    sort_column(region.points, begin, static_cast<std::int32_t>(x_min));
}

}  // namespace citysplat::tiling
