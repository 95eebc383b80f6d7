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

/// Calls visit(sector) for a sector and its eight neighbours, along y first.
template <class Visit>
void for_neighbourhood(const Sector& sector, const Visit& visit) {
    for (std::int32_t x = sector.x - 1; x <= sector.x + 1; ++x)
        for (std::int32_t y = sector.y - 1; y <= sector.y + 1; ++y) visit(Sector{x, y});
}

std::int64_t to_whole_metres(std::int64_t steps) { return floor_div(steps, kLatticePerMetre); }

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

std::map<Sector, Hash128> content_hashes(const std::vector<CitySource>& sources) {
    struct Content {
        std::set<Hash128> segments;  // two sources may bring the same points: the union is what counts
        std::uint64_t most_points = 0;
        Hash128 hash;
    };
    std::map<Sector, Content> contents;
    for (const CitySource& source : sources)
        for (const SegmentRow& segment : source.segments) {
            Content& content = contents[{segment.sector_x, segment.sector_y}];
            content.segments.insert(segment.hash);
            content.most_points = std::max(content.most_points, segment.points);
        }
    for (auto& [sector, content] : contents) {
        Hasher hasher;
        for (const Hash128& segment : content.segments) hasher.hash(segment);
        content.hash = hasher.finish();
    }
    std::map<Sector, Hash128> hashes;
    for (const auto& [sector, content] : contents) {
        Hasher hasher;
        const auto add = [&](const Sector& s) {
            if (const auto found = contents.find(s); found != contents.end())
                hasher.number(s.x).number(s.y).hash(found->second.hash);
        };
        if (content.most_points >= kFewestPointsAround)
            add(sector);
        else
            for_neighbourhood(sector, add);
        hashes.emplace_hint(hashes.end(), sector, hasher.finish());
    }
    return hashes;
}

std::map<Sector, Hash128> content_and_ray_hashes(const std::vector<CitySource>& sources) {
    const std::map<Sector, Hash128> contents = content_hashes(sources);
    std::map<Sector, SectorBox> reaches;
    for (const CitySource& source : sources)
        for (const SegmentRow& segment : source.segments)
            reaches[{segment.sector_x, segment.sector_y}].add(segment.reach);
    std::map<Sector, Hasher> hashers;
    for (const auto& [sector, hash] : contents) hashers[sector].hash(hash);
    for (const auto& [from, reach] : reaches)
        for (std::int32_t x = reach.min_x; x <= reach.max_x; ++x)
            for (auto to = hashers.lower_bound({x, reach.min_y});
                 to != hashers.end() && to->first <= Sector{x, reach.max_y}; ++to)
                to->second.number(from.x).number(from.y).hash(contents.at(from));
    std::map<Sector, Hash128> hashes;
    for (auto& [sector, hasher] : hashers) hashes.emplace_hint(hashes.end(), sector, hasher.finish());
    return hashes;
}

CityPoints::CityPoints(const ObjectStore& store, std::vector<CitySource> sources, const CancelToken* cancel)
    : sources_(std::move(sources)),
      cancel_(cancel),
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
    for (const Part& part : parts_) {
        if (sectors_.empty() || sectors_.back() != part.sector) {
            sectors_.push_back(part.sector);
            reaches_.emplace_back();
        }
        reaches_.back().add(part.segment.reach);
    }
}

void CityPoints::quarantine_far_outliers() {
    // The largest segment: a sector has at least so many points, whatever the other segments repeat.
    std::map<Sector, std::uint64_t> at_least;
    for (const Part& part : parts_) {
        std::uint64_t& most = at_least[part.sector];
        most = std::max(most, part.segment.points);
    }
    const auto enough_around = [&](const Sector& sector, const auto& points_of) {
        std::uint64_t around = 0;
        for_neighbourhood(sector, [&](const Sector& s) {
            if (around < kFewestPointsAround && at_least.contains(s)) around += points_of(s);
        });
        return around >= kFewestPointsAround;
    };
    std::set<Sector> far;
    for (const auto& [sector, points] : at_least) {
        if (points >= kFewestPointsAround ||
            enough_around(sector, [&](const Sector& s) { return at_least.at(s); }) ||
            enough_around(sector, [&](const Sector& s) { return count_different(s); }))
            continue;
        far.insert(sector);
        quarantined_points_ += count_different(sector);
    }
    std::erase_if(parts_, [&](const Part& part) { return far.contains(part.sector); });
}

std::uint64_t CityPoints::count_different(const Sector& sector) const {
    const std::span<const Part> parts = parts_of(sector);
    for (const Part& part : parts)
        if (part.segment.points >= kFewestPointsAround) return part.segment.points;
    if (parts.front().segment.hash == parts.back().segment.hash) return parts.front().segment.points;
    std::set<TilePoint> points;
    const Hash128* before = nullptr;
    for (const Part& part : parts) {
        if (before && *before == part.segment.hash) continue;
        before = &part.segment.hash;
        for (const TilePoint& p : read_segment(part)) points.insert(p);
        if (points.size() >= kFewestPointsAround) break;
    }
    return points.size();
}

std::vector<TilePoint> CityPoints::read_segment(const Part& part) const {
    const auto file = archives_.open(sources_[part.source].row.object);
    std::vector<TilePoint> points;
    std::vector<std::byte> bytes;
    for (const CellSpan& cell : read_table(*file, part.segment, name(part)).cells) {
        bytes.resize(cell.bytes);
        file->read_at(cell.offset, bytes);
        decode_cell(bytes, cell, points, name(part));
    }
    return points;
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

std::shared_ptr<const CityPoints::Tables> CityPoints::tables_of(const Sector& sector) const {
    {
        const std::lock_guard lock(tables_mutex_);
        if (const auto found = tables_.find(sector); found != tables_.end()) return found->second;
    }
    check_cancel();
    auto tables = std::make_shared<Tables>();
    std::size_t spans = 0;
    for (const Part& part : parts_of(sector)) {
        const auto file = archives_.open(sources_[part.source].row.object);
        tables->push_back(read_table(*file, part.segment, name(part)));
        spans += tables->back().cells.size() + tables->back().rays.size();
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
        for (const SegmentTable& table : *tables_of(sector))
            for (const CellSpan& cell : table.cells)
                if (cell_box(sector, cell.cell).intersects(box)) count += cell.points;
    });
    return count;
}

std::vector<int> CityPoints::occupied_cells(const Sector& sector) const {
    std::bitset<kCellsPerSector> occupied;
    for (const SegmentTable& table : *tables_of(sector))
        for (const CellSpan& cell : table.cells) occupied.set(static_cast<std::size_t>(cell.cell));
    std::vector<int> cells;
    for (int cell = 0; cell < kCellsPerSector; ++cell)
        if (occupied.test(static_cast<std::size_t>(cell))) cells.push_back(cell);
    return cells;
}

Region CityPoints::read(const LatticeBox& core, std::int64_t halo_steps) const {
    Region region{.frame = {to_whole_metres(core.min_x), to_whole_metres(core.min_y), 0},
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
            const std::vector<CellSpan>& all = (*tables)[i].cells;
            std::copy_if(all.begin(), all.end(), std::back_inserter(cells),
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
        for (int column = 0; column < kCellsPerSide; ++column) {
            check_cancel();
            read_column(strip, column, box, region);
        }
        begin = end;
    }
    region.frame.z_m = frame_height_m(region);
    const auto z0 = static_cast<std::int32_t>(region.frame.origin().z);
    for (TilePoint& p : region.points) p.z -= z0;
    return region;
}

void CityPoints::visit_rays(const LatticeBox& box, const VisitRays& visit) const {
    const SectorBox wanted = sectors_of(box);
    std::vector<std::byte> bytes;
    std::vector<Ray> rays;
    for (std::size_t s = 0; s < sectors_.size(); ++s) {
        if (!reaches_[s].intersects(wanted)) continue;
        const auto tables = tables_of(sectors_[s]);
        const std::span<const Part> parts = parts_of(sectors_[s]);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const Part& part = parts[i];
            // Parts with the same points follow each other.
            if (i > 0 && part.segment.hash == parts[i - 1].segment.hash) continue;
            if (!part.segment.reach.intersects(wanted)) continue;
            const SegmentTable& table = (*tables)[i];
            if (!table.has_rays) {
                visit_rays_of_points(part, table, visit);
                continue;
            }
            const auto file = archives_.open(sources_[part.source].row.object);
            for (const RaySpan& span : table.rays) {
                if (!span.passed.intersects(box)) continue;
                bytes.resize(span.bytes);
                file->read_at(span.offset, bytes);
                rays.clear();
                decode_span(bytes, span, rays, name(part));
                visit(part.sector, rays);
            }
        }
    }
}

void CityPoints::visit_rays_of_points(const Part& part, const SegmentTable& table,
                                      const VisitRays& visit) const {
    const auto file = archives_.open(sources_[part.source].row.object);
    std::vector<std::byte> bytes;
    std::vector<TilePoint> points;
    std::vector<Ray> rays;
    for (const CellSpan& cell : table.cells) {
        bytes.resize(cell.bytes);
        file->read_at(cell.offset, bytes);
        points.clear();
        decode_cell(bytes, cell, points, name(part));
        rays.clear();
        for (const TilePoint& p : points)
            if (is_witness(p, part.sector)) rays.push_back(ray_of(p));
        if (!rays.empty()) visit(part.sector, rays);
    }
}

void CityPoints::read_column(std::span<const PartCells> parts, int column, const LatticeBox& box,
                             Region& region) const {
    const std::size_t begin = region.points.size();
    if (!decode_column(parts, column, box, region)) return;
    const std::int64_t x_min =
        parts.front().part->sector.origin_x() + column * kCellSteps - region.frame.origin().x;
    sort_column(region.points, begin, static_cast<std::int32_t>(x_min));
}

bool CityPoints::decode_column(std::span<const PartCells> parts, int column, const LatticeBox& box,
                               Region& region) const {
    const LatticePoint origin = region.frame.origin();
    bool any = false;
    std::vector<std::byte> bytes;
    for (const auto& [part, cells] : parts) {
        const Sector sector = part->sector;
        const auto in_column = [&](const CellSpan& c) { return c.cell / kCellsPerSide == column; };
        auto cell = std::find_if(cells.begin(), cells.end(), in_column);
        const auto last = std::find_if_not(cell, cells.end(), in_column);
        if (cell == last) continue;
        any = true;
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
    return any;
}

}  // namespace citysplat::tiling
