#pragma once

#include "io/input/input_list.hpp"
#include "io/input/open_point_file.hpp"
#include "model/trajectory.hpp"
#include "tiling/tile_processor.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace citysplat::bench {

/// A drive held in memory in cells of 8 m, for benchmarks of what comes after tiling.
class PointStore : public tiling::RegionReader {
  public:
    PointStore(std::span<const std::filesystem::path> files, const Trajectory& trajectory) {
        for (const auto& file : files) add(*open_point_file(file), trajectory);
        sort();
    }
    PointStore(std::span<const InputSource> sources, const Trajectory& trajectory) {
        for (const InputSource& source : sources) add(*source.open(), trajectory);
        sort();
    }

    tiling::Region read(const LatticeBox& core, std::int64_t halo_steps) const override {
        tiling::Region r;
        r.core = core;
        r.covered = core.widened(halo_steps);
        r.frame = {floor_div(core.min_x, kLatticePerMetre), floor_div(core.min_y, kLatticePerMetre), z_m_};
        const LatticePoint o = r.frame.origin();
        for_cells(r.covered, [&](const Cell& key, const std::vector<TilePoint>& points) {
            const std::int64_t x0 = key.first * kCellSteps, y0 = key.second * kCellSteps;
            for (const TilePoint& p : points) {
                if (!r.covered.contains(x0 + p.x, y0 + p.y)) continue;
                r.points.push_back(p);
                r.points.back().x = static_cast<std::int32_t>(x0 + p.x - o.x);
                r.points.back().y = static_cast<std::int32_t>(y0 + p.y - o.y);
            }
        });
        std::sort(r.points.begin(), r.points.end());
        r.points.erase(std::unique(r.points.begin(), r.points.end()), r.points.end());
        return r;
    }
    std::uint64_t count_at_most(const LatticeBox& box) const override {
        std::uint64_t n = 0;
        for_cells(box, [&](const Cell&, const std::vector<TilePoint>& points) { n += points.size(); });
        return n;
    }
    std::uint64_t total_points() const override { return total_; }
    LatticeBox bounds() const override { return bounds_; }
    std::vector<tiling::Sector> occupied_sectors() const override {
        std::set<tiling::Sector> sectors;
        for (const auto& [cell, points] : cells_)
            sectors.insert(tiling::sector_of(cell.first * kCellSteps, cell.second * kCellSteps));
        return {sectors.begin(), sectors.end()};
    }
    std::vector<int> occupied_cells(const tiling::Sector& sector) const override {
        std::set<int> cells;
        for_cells(sector.box(), [&](const Cell& key, const std::vector<TilePoint>& points) {
            const auto dx = static_cast<std::int32_t>(key.first * kCellSteps - sector.origin_x());
            const auto dy = static_cast<std::int32_t>(key.second * kCellSteps - sector.origin_y());
            for (const TilePoint& p : points) cells.insert(tiling::cell_of(dx + p.x, dy + p.y));
        });
        return {cells.begin(), cells.end()};
    }

  private:
    using Cell = std::pair<std::int64_t, std::int64_t>;
    static constexpr std::int64_t kCellSteps = 8 * kLatticePerMetre;

    template <class Visit>
    void for_cells(const LatticeBox& box, const Visit& visit) const {
        for (std::int64_t ix = floor_div(box.min_x, kCellSteps); ix * kCellSteps < box.max_x; ++ix) {
            auto cell = cells_.lower_bound({ix, floor_div(box.min_y, kCellSteps)});
            for (; cell != cells_.end() && cell->first.first == ix; ++cell) {
                if (cell->first.second * kCellSteps >= box.max_y) break;
                visit(cell->first, cell->second);
            }
        }
    }

    void sort() {
        for (auto& [cell, points] : cells_) std::sort(points.begin(), points.end());
    }

    void add(const PointFile& input, const Trajectory& trajectory) {
        PointBatch batch;
        for (std::size_t b = 0; b < input.block_count(); ++b) {
            input.read_block(b, batch);
            if (batch.size() == 0) continue;
            if (total_ == 0) z_m_ = static_cast<std::int64_t>(std::floor(batch.z[0]));
            for (std::size_t i = 0; i < batch.size(); ++i) add_point(batch, i, trajectory);
        }
    }

    void add_point(const PointBatch& batch, std::size_t i, const Trajectory& trajectory) {
        const LatticePoint w{to_lattice(batch.x[i]), to_lattice(batch.y[i]), to_lattice(batch.z[i])};
        TilePoint p{};
        const Cell cell{floor_div(w.x, kCellSteps), floor_div(w.y, kCellSteps)};
        p.x = static_cast<std::int32_t>(w.x - cell.first * kCellSteps);
        p.y = static_cast<std::int32_t>(w.y - cell.second * kCellSteps);
        p.z = static_cast<std::int32_t>(w.z - z_m_ * kLatticePerMetre);
        p.label = batch.label.empty() ? std::uint16_t{0} : batch.label[i];
        p.intensity = batch.intensity.empty() ? std::uint16_t{0} : batch.intensity[i];
        p.sensor_dx = p.sensor_dy = p.sensor_dz = TilePoint::kNoSensor;
        if (!batch.gps_time.empty() && !trajectory.empty()) {
            if (const auto pose = trajectory.at(batch.gps_time[i])) {
                const auto steps = [](double m) {
                    return static_cast<std::int16_t>(std::clamp(std::floor(m * 64 + 0.5), -32704.0, 32704.0));
                };
                p.sensor_dx = steps(pose->translation.x - batch.x[i]);
                p.sensor_dy = steps(pose->translation.y - batch.y[i]);
                p.sensor_dz = steps(pose->translation.z - batch.z[i]);
            }
        }
        if (total_++ == 0) bounds_ = {w.x, w.y, w.x + 1, w.y + 1};
        bounds_.min_x = std::min(bounds_.min_x, w.x), bounds_.max_x = std::max(bounds_.max_x, w.x + 1);
        bounds_.min_y = std::min(bounds_.min_y, w.y), bounds_.max_y = std::max(bounds_.max_y, w.y + 1);
        cells_[cell].push_back(p);
    }

    std::map<Cell, std::vector<TilePoint>> cells_;
    std::uint64_t total_ = 0;
    std::int64_t z_m_ = 0;
    LatticeBox bounds_;
};

}  // namespace citysplat::bench
