#include "gis/city_layers.hpp"

#include "core/error.hpp"
#include "gis/layer_styles.hpp"
#include "io/input/reading.hpp"
#include "tiling/store/product_kinds.hpp"

#include <limits>
#include <map>
#include <set>

namespace citysplat::gis {

namespace {

using tiling::GenerationRow;
using tiling::InputRow;
using tiling::ProductRow;

/// Poses of a trajectory that are nearer to each other say the same on a map.
constexpr double kLineStep_m = 0.5;

Cell cell(std::uint64_t n) { return static_cast<std::int64_t>(n); }

double side_of(const TileKey& key, std::int64_t tile_size_m) {
    return static_cast<double>(tile_size_m) / static_cast<double>(1 << key.level);
}

std::array<double, 4> box_of(const TileKey& key, std::int64_t tile_size_m) {
    const double side = side_of(key, tile_size_m);
    return {key.ix * side, key.iy * side, (key.ix + 1) * side, (key.iy + 1) * side};
}

/// Since when each tile is as it is: the first of the generations up to this one, without a gap, that had it
/// so. Of those that have not been forgotten.
std::map<TileKey, std::int64_t> since(tiling::Catalog& catalog, const GenerationRow& generation,
                                      const std::vector<ProductRow>& tiles, const CancelToken& cancel) {
    std::map<TileKey, std::int64_t> found;
    std::map<TileKey, Hash128> open;
    for (const ProductRow& t : tiles) found[t.tile] = generation.id, open[t.tile] = t.digest;
    const auto history = catalog.history();
    for (auto g = history.rbegin(); g != history.rend() && !open.empty(); ++g) {
        cancel.check();
        if (g->id >= generation.id) continue;
        std::map<TileKey, Hash128> still;
        for (const ProductRow& t : catalog.tiles(g->id))
            if (const auto at = open.find(t.tile); at != open.end() && at->second == t.digest) {
                found[t.tile] = g->id;
                still.insert(*at);
            }
        open = std::move(still);
    }
    return found;
}

class Layers {
  public:
    Layers(tiling::Catalog& catalog, const LayerWish& wish, const CancelToken& cancel)
        : catalog_(catalog), wish_(wish), cancel_(cancel) {}

    void tiles(GeoPackage& out) {
        out.begin_layer({"tiles",
                         "Tiles of generation " + std::to_string(wish_.generation.id),
                         Shape::polygon,
                         {{"tile", "TEXT"},
                          {"level", "INTEGER"},
                          {"points", "INTEGER"},
                          {"points_removed", "INTEGER"},
                          {"splats", "INTEGER"},
                          {"splats_per_m2", "REAL"},
                          {"bytes", "INTEGER"},
                          {"min_z_m", "REAL"},
                          {"max_z_m", "REAL"},
                          {"since_generation", "INTEGER"}},
                         tiles_style(wish_.generation.id)});
        const auto rows = tiling::of_kind(catalog_.tiles(wish_.generation.id), ProductKind::splats);
        const auto first = since(catalog_, wish_.generation, rows, cancel_);
        for (const ProductRow& t : rows) {
            const double side = side_of(t.tile, wish_.generation.tile_size_m);
            // A tile without splats has no height. SQLite keeps what is not a number as NULL.
            constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
            const std::array<Cell, 10> cells{t.tile.text(),
                                             std::int64_t{t.tile.level},
                                             cell(t.points),
                                             cell(t.removed),
                                             cell(t.splats),
                                             static_cast<double>(t.splats) / (side * side),
                                             cell(t.object_bytes),
                                             t.object ? t.box[2] : kNothing,
                                             t.object ? t.box[5] : kNothing,
                                             first.at(t.tile)};
            out.add_box(box_of(t.tile, wish_.generation.tile_size_m), cells);
            ++report_.counts.tiles;
        }
    }

    void inputs(GeoPackage& out) {
        out.begin_layer({"inputs",
                         "Inputs of generation " + std::to_string(wish_.generation.id),
                         Shape::polygon,
                         {{"path", "TEXT"},
                          {"format", "TEXT"},
                          {"trajectory", "TEXT"},
                          {"points_read", "INTEGER"},
                          {"points_kept", "INTEGER"},
                          {"points_without_sensor", "INTEGER"},
                          {"bytes", "INTEGER"}},
                         inputs_style()});
        for (const InputRow& row : catalog_.inputs(wish_.generation.id)) {
            const tiling::SourceRow source = catalog_.source(row.source);
            const std::array<Cell, 7> cells{row.path,
                                            source.format,
                                            row.trajectory,
                                            cell(source.counts.read),
                                            cell(source.counts.kept),
                                            cell(source.counts.without_sensor),
                                            cell(source.content_bytes)};
            const LatticeBox& b = source.bounds;
            if (b.min_x < b.max_x)
                out.add_box({to_metres(b.min_x), to_metres(b.min_y), to_metres(b.max_x), to_metres(b.max_y)},
                            cells);
            else  // no point of it was kept
                out.add_nowhere(cells);
            ++report_.counts.inputs;
        }
    }

    void trajectories(GeoPackage& out) {
        out.begin_layer({"trajectories",
                         "Where the sensors were",
                         Shape::line_z,
                         {{"path", "TEXT"},
                          {"begin_s", "REAL"},
                          {"end_s", "REAL"},
                          {"length_m", "REAL"},
                          {"poses", "INTEGER"},
                          {"inputs", "INTEGER"}},
                         trajectories_style()});
        std::map<std::string, std::pair<std::string, std::uint64_t>> drives;  // reading, inputs
        for (const InputRow& row : catalog_.inputs(wish_.generation.id))
            if (!row.trajectory.empty()) {
                auto& drive = drives.try_emplace(row.trajectory, row.reading, 0).first->second;
                ++drive.second;
            }
        for (const auto& [path, drive] : drives) {
            cancel_.check();
            try {
                add_trajectory(out, path, io::trajectory_by_reading(path, drive.first), drive.second);
            } catch (const Error& e) {
                if (e.kind() == ErrorKind::interrupted) throw;
                report_.warnings.push_back(std::string("left out: ") + e.what());
            }
        }
    }

    void tile_changes(GeoPackage& out) {
        out.begin_layer({"tile_changes",
                         "Tiles that differ" + from_text(),
                         Shape::polygon,
                         {{"tile", "TEXT"},
                          {"change", "TEXT"},
                          {"reason", "TEXT"},
                          {"splats_before", "INTEGER"},
                          {"splats", "INTEGER"}},
                         tile_changes_style()});
        if (!wish_.changes) return;
        for (const diff::TileChange& t : wish_.changes->catalog.tiles) {
            const bool removed = t.change == diff::Change::removed;
            const std::array<Cell, 5> cells{t.tile.text(), std::string(diff::kChanges.of(t.change)),
                                            removed ? std::string("no points") : tiling::text_of(t.reason),
                                            cell(t.splats_before), cell(t.splats)};
            out.add_box(
                box_of(t.tile, removed ? wish_.changes->from_tile_size_m : wish_.generation.tile_size_m),
                cells);
            ++report_.counts.tile_changes;
        }
    }

    void changes(GeoPackage& out) {
        out.begin_layer({"changes",
                         "Surfaces that are gone, new or moved" + from_text(),
                         Shape::polygon,
                         {{"kind", "TEXT"},
                          {"class", "TEXT"},
                          {"area_m2", "REAL"},
                          {"volume_m3", "REAL"},
                          {"distance_m", "REAL"},
                          {"significance", "REAL"},
                          {"looks", "REAL"},
                          {"min_z_m", "REAL"},
                          {"max_z_m", "REAL"}},
                         changes_style()});
        if (!wish_.changes || !wish_.changes->surfaces) return;
        for (const diff::SurfaceCluster& c : wish_.changes->surfaces->clusters) {
            const auto& classes = wish_.classes.classes();
            const auto known = classes.find(c.label);
            const std::array<Cell, 9> cells{
                std::string(diff::kSurfaceChanges.of(c.kind)),
                known == classes.end() ? "label " + std::to_string(c.label) : known->second.name,
                c.area_m2,
                c.volume_m3,
                c.distance_m,
                c.significance,
                c.looks,
                c.min.z,
                c.max.z};
            out.add_box({c.min.x, c.min.y, c.max.x, c.max.y}, cells);
            ++report_.counts.changes;
        }
    }

    LayerReport take() { return std::move(report_); }

  private:
    std::string from_text() const {
        return wish_.changes ? " from generation " + std::to_string(wish_.changes->from) : "";
    }

    void add_trajectory(GeoPackage& out, const std::string& path, const Trajectory& trajectory,
                        std::uint64_t inputs) {
        std::vector<Vec3d> line;
        for (const StampedPose& pose : trajectory.poses()) {
            const Vec3d at = pose.world_from_body.translation;
            if (line.empty() || length(at - line.back()) >= kLineStep_m) line.push_back(at);
        }
        // A line has two ends, also where the sensor stood.
        if (const Vec3d end = trajectory.poses().back().world_from_body.translation;
            line.size() == 1 || length(end - line.back()) > 0)
            line.push_back(end);
        const std::array<Cell, 6> cells{path,
                                        trajectory.begin_s(),
                                        trajectory.end_s(),
                                        trajectory.length_m(),
                                        cell(trajectory.poses().size()),
                                        cell(inputs)};
        out.add_line(line, cells);
        ++report_.counts.trajectories;
    }

    tiling::Catalog& catalog_;
    const LayerWish& wish_;
    const CancelToken& cancel_;
    LayerReport report_;
};

}  // namespace

LayerReport write_city_layers(tiling::Catalog& catalog, const LayerWish& wish,
                              const std::filesystem::path& path, const CancelToken& cancel) {
    Layers layers(catalog, wish, cancel);
    GeoPackage out(path, wish.generation.crs, wish.generation.created_s);
    layers.tiles(out);
    layers.inputs(out);
    layers.trajectories(out);
    layers.tile_changes(out);
    layers.changes(out);
    out.finish();
    return layers.take();
}

}  // namespace citysplat::gis
