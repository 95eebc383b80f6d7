#include "tiling/build/build_plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace citysplat::tiling {

namespace {

TileKey base_of(TileKey key) {
    while (key.level > 0) key = key.parent();
    return key;
}

class Planner {
  public:
    explicit Planner(const PlanInput& input) : in_(input) {}

    BuildPlan run() {
        for (const ProductRow& tile : in_.before) before_[base_of(tile.tile)].push_back(&tile);
        std::set<TileKey> bases =
            in_.all_because ? bases_of(in_.points.occupied_sectors()) : bases_of(in_.changed);
        for (const auto& [base, tiles] : before_) bases.insert(base);
        for (const TileKey& base : bases) plan_base(base);
        std::sort(plan_.planned.begin(), plan_.planned.end(),
                  [](const PlannedTile& a, const PlannedTile& b) { return a.key < b.key; });
        return std::move(plan_);
    }

  private:
    template <class Sectors>
    std::set<TileKey> bases_of(const Sectors& sectors) const {
        std::set<TileKey> bases;
        for (const Sector& sector : sectors)
            for (const int cell : in_.points.occupied_cells(sector)) {
                const LatticeBox box = cell_box(sector, cell).widened(in_.processor.reach_steps());
                const TileKey low = in_.grid.base_tile_of(box.min_x, box.min_y);
                const TileKey high = in_.grid.base_tile_of(box.max_x - 1, box.max_y - 1);
                for (std::int32_t x = low.ix; x <= high.ix; ++x)
                    for (std::int32_t y = low.iy; y <= high.iy; ++y) bases.insert({0, x, y, in_.kind});
            }
        return bases;
    }

    bool change_reaches(const LatticeBox& box) const {
        if (in_.changed.empty()) return false;
        const Sector low = sector_of(box.min_x, box.min_y), high = sector_of(box.max_x - 1, box.max_y - 1);
        for (std::int32_t x = low.x; x <= high.x; ++x) {
            const auto at = in_.changed.lower_bound({x, low.y});
            if (at != in_.changed.end() && *at <= Sector{x, high.y}) return true;
        }
        return false;
    }

    bool has_object(const ProductRow& tile) const {
        return !tile.object || in_.store.size_of(*tile.object) == tile.object_bytes;
    }

    void plan_base(const TileKey& base) {
        const auto found = before_.find(base);
        if (found != before_.end() && !in_.all_because) {
            bool keep = true;
            for (const ProductRow* tile : found->second)
                keep = keep && !change_reaches(
                                   in_.grid.core(tile->tile).widened(tile->halo_steps + in_.margin_steps));
            // Points may have come to a part of the base tile that had none.
            keep = keep && !change_reaches(in_.grid.core(base).widened(in_.processor.reach_steps()));
            if (keep) {
                for (const ProductRow* tile : found->second) keep_or_repair(*tile);
                return;
            }
        }
        split(base, found == before_.end() ? nullptr : &found->second);
    }

    void keep_or_repair(const ProductRow& tile) {
        if (has_object(tile)) {
            plan_.reused.push_back(tile);
            return;
        }
        const LatticeBox box = in_.grid.core(tile.tile).widened(tile.halo_steps);
        plan_.planned.push_back({tile.tile, in_.points.count_at_most(box), tile, Reason::missing_object});
    }

    bool too_large(std::uint64_t points) const {
        return in_.processor.estimated_bytes(points) > in_.worker_bytes ||
               (in_.most_tile_points && points > *in_.most_tile_points);
    }

    /// Below the size of the halo, splitting makes more work and no smaller regions.
    bool may_split(const TileKey& key) const {
        const std::int64_t half = in_.grid.size_steps(key.level) / 2;
        return key.level < TileGrid::kMaxLevel && in_.grid.size_steps(key.level) % 2 == 0 &&
               half >= std::max(in_.processor.initial_halo_steps(), kLatticePerMetre);
    }

    void split(const TileKey& key, const std::vector<const ProductRow*>* before) {
        const LatticeBox core = in_.grid.core(key);
        if (in_.points.count_at_most(core.widened(in_.processor.reach_steps())) == 0) return;
        const std::uint64_t points =
            in_.points.count_at_most(core.widened(in_.processor.initial_halo_steps()));
        if (too_large(points) && may_split(key)) {
            for (int quadrant = 0; quadrant < 4; ++quadrant) split(key.child(quadrant), before);
            return;
        }
        PlannedTile tile{key, points, {}, in_.all_because.value_or(Reason::new_tile)};
        if (before) {
            for (const ProductRow* row : *before)
                if (row->tile == key) tile.previous = *row;
            if (!tile.previous && !in_.all_because) tile.reason = Reason::split;
            if (tile.previous && !has_object(*tile.previous)) tile.reason = Reason::missing_object;
        }
        plan_.planned.push_back(std::move(tile));
    }

    const PlanInput& in_;
    std::map<TileKey, std::vector<const ProductRow*>> before_;
    BuildPlan plan_;
};

}  // namespace

void BuildPlan::add(BuildPlan other) {
    reused.insert(reused.end(), std::make_move_iterator(other.reused.begin()),
                  std::make_move_iterator(other.reused.end()));
    planned.insert(planned.end(), std::make_move_iterator(other.planned.begin()),
                   std::make_move_iterator(other.planned.end()));
    std::sort(planned.begin(), planned.end(),
              [](const PlannedTile& a, const PlannedTile& b) { return a.key < b.key; });
}

BuildPlan make_plan(const PlanInput& input) { return Planner(input).run(); }

}  // namespace citysplat::tiling
