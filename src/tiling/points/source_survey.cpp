#include "tiling/points/source_survey.hpp"

#include <span>
#include <string>

namespace citysplat::tiling {

namespace {

/// For messages.
std::string name_of(const CitySource& source) {
    return "the point archive " + source.row.object.hex() + " of a source";
}

}  // namespace

SourceSurvey::SourceSurvey(CityPaths paths, std::vector<CitySource> sources)
    : store_(std::move(paths)),
      sources_(std::move(sources)),
      archives_(store_, "the point archive of a source", descriptor_budget() / 4) {
    for (std::uint32_t s = 0; s < sources_.size(); ++s)
        for (const SegmentRow& segment : sources_[s].segments)
            parts_[{segment.sector_x, segment.sector_y}].push_back({s, segment});
}

std::vector<Sector> SourceSurvey::sectors() const {
    std::vector<Sector> all;
    for (const auto& [sector, parts] : parts_) all.push_back(sector);
    return all;
}

std::vector<SourceSurvey::CellCount> SourceSurvey::cells(const Sector& sector) const {
    std::vector<CellCount> counts;
    const auto found = parts_.find(sector);
    if (found == parts_.end()) return counts;
    for (const Part& part : found->second) {
        const CitySource& source = sources_[part.source];
        const auto file = archives_.open(source.row.object);
        for (const CellSpan& span : read_table(*file, part.segment, name_of(source)).cells)
            counts.push_back({part.source, span.cell, span.points});
    }
    return counts;
}

std::vector<std::uint64_t> SourceSurvey::within(const LatticePoint& centre, std::int64_t radius_steps) const {
    std::vector<std::uint64_t> counts(sources_.size());
    const LatticeBox around =
        LatticeBox{centre.x, centre.y, centre.x + 1, centre.y + 1}.widened(radius_steps);
    const SectorBox touched = sectors_of(around);
    for (const auto& [sector, parts] : parts_) {
        if (!touched.contains(sector)) continue;
        for (const Part& part : parts) {
            const CitySource& source = sources_[part.source];
            const auto file = archives_.open(source.row.object);
            for (const CellSpan& span : read_table(*file, part.segment, name_of(source)).cells) {
                if (!cell_box(sector, span.cell).intersects(around)) continue;
                std::vector<std::byte> bytes(span.bytes);
                file->read_at(span.offset, bytes);
                std::vector<TilePoint> points;
                decode_cell(bytes, span, points, name_of(source));
                for (const TilePoint& p : points) {
                    const std::int64_t dx = sector.origin_x() + p.x - centre.x,
                                       dy = sector.origin_y() + p.y - centre.y, dz = p.z - centre.z;
                    if (dx * dx + dy * dy + dz * dz <= radius_steps * radius_steps) ++counts[part.source];
                }
            }
        }
    }
    return counts;
}

}  // namespace citysplat::tiling
