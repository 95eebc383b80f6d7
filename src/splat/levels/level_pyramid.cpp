#include "splat/levels/level_pyramid.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <cmath>

namespace citysplat::splat {

namespace {

/// Splats lie within 1 km of the frame of their tile, which lies at its corner; tiles are 512 m at most.
constexpr std::int64_t kMostColumnsAcross = 48;
/// From this level down the columns below a cube are made together: 64 of them.
constexpr int kBatchLevel = 6;

struct ColumnRange {
    std::int64_t min_x, min_y, max_x, max_y;
};

std::int64_t column_at(double metres) {
    return static_cast<std::int64_t>(std::floor(metres)) >> (side_shift(0) - kLatticeBits);
}

ColumnRange columns_of(const TileEntry& tile) {
    const ColumnRange range{column_at(tile.min.x), column_at(tile.min.y), column_at(tile.max.x),
                            column_at(tile.max.y)};
    if (range.max_x - range.min_x >= kMostColumnsAcross || range.max_y - range.min_y >= kMostColumnsAcross)
        throw CorruptionError("tile " + tile.key.text() + ": its box in the catalog is larger than any tile");
    return range;
}

/// The coarsest cubes: of the first level at which eight or fewer hold the whole city. The box around all
/// discs is the same in every tiling.
std::vector<CubeId> roots_of(std::span<const TileEntry> tiles) {
    if (tiles.empty()) return {};
    Vec3d min = tiles[0].min, max = tiles[0].max;
    for (const TileEntry& tile : tiles) {
        min = {std::min(min.x, tile.min.x), std::min(min.y, tile.min.y), std::min(min.z, tile.min.z)};
        max = {std::max(max.x, tile.max.x), std::max(max.y, tile.max.y), std::max(max.z, tile.max.z)};
    }
    const auto point = [](Vec3d v) {
        return LatticePoint{to_lattice(v.x), to_lattice(v.y), to_lattice(v.z)};
    };
    for (int level = kLastCellLevel + 1;; ++level) {
        const CubeId a = cube_of(point(min), level), b = cube_of(point(max), level);
        const bool fits = b.x - a.x <= 1 && b.y - a.y <= 1 && b.z - a.z <= 1;
        if (!fits && level < kTopLevel) continue;
        std::vector<CubeId> roots;
        for (std::int32_t x = a.x; x <= b.x; ++x)
            for (std::int32_t y = a.y; y <= b.y; ++y)
                for (std::int32_t z = a.z; z <= b.z; ++z) roots.push_back({level, x, y, z});
        return roots;
    }
}

std::vector<LevelDisc> discs_of(const LevelCube& cube) {
    std::vector<LevelDisc> discs;
    discs.reserve(cube.discs.size());
    for (std::size_t i = 0; i < cube.discs.size(); ++i) discs.push_back(cube.disc(i));
    return discs;
}

LevelCubePtr empty_cube(const CubeId& id, bool incomplete = false) {
    LevelCube cube;
    cube.id = id;
    cube.incomplete = incomplete;
    return std::make_shared<const LevelCube>(std::move(cube));
}

}  // namespace

LevelCubePtr LevelCache::find(const CubeId& id) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(id);
    if (found == places_.end()) return nullptr;
    Recency& list = by_level_[id.level];
    list.splice(list.end(), list, found->second);
    return *found->second;
}

LevelCubePtr LevelCache::keep(LevelCubePtr cube) {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(cube->id); found != places_.end()) return *found->second;
    used_bytes_ += cube->bytes();
    Recency& list = by_level_[cube->id.level];
    places_[cube->id] = list.insert(list.end(), cube);
    while (used_bytes_ > budget_bytes_) {
        Recency& finest = std::find_if(by_level_.begin(), by_level_.end(), [](const auto& level) {
                              return !level.second.empty();
                          })->second;
        used_bytes_ -= finest.front()->bytes();
        places_.erase(finest.front()->id);
        finest.pop_front();
    }
    return cube;
}

std::uint64_t LevelCache::used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
}

std::shared_ptr<const SplatTile> TileShelf::load(std::size_t tile) {
    {
        const std::lock_guard lock(mutex_);
        for (auto at = tiles_.begin(); at != tiles_.end(); ++at)
            if (at->first == tile) {
                tiles_.splice(tiles_.begin(), tiles_, at);
                return at->second;
            }
    }
    const auto loaded = std::make_shared<const SplatTile>(city_.load(tile));
    const std::lock_guard lock(mutex_);
    tiles_.emplace_front(tile, loaded);
    used_bytes_ += loaded->bytes().size();
    while (used_bytes_ > budget_bytes_ && tiles_.size() > 1) {
        used_bytes_ -= tiles_.back().second->bytes().size();
        tiles_.pop_back();
    }
    return loaded;
}

LevelPyramid::LevelPyramid(const TileSource& city, const PyramidOptions& options)
    : tiles_(city, options.tile_bytes),
      city_(city),
      cache_(options.cache_bytes),
      store_(options.store),
      store_key_(options.store_key),
      roots_(roots_of(city.tiles())) {
    for (std::uint32_t tile = 0; tile < city.tiles().size(); ++tile) {
        const TileEntry& entry = city.tiles()[tile];
        const ColumnRange range = columns_of(entry);
        lowest_ = tile == 0 ? column_at(entry.min.z) : std::min(lowest_, column_at(entry.min.z));
        highest_ = tile == 0 ? column_at(entry.max.z) : std::max(highest_, column_at(entry.max.z));
        for (std::int64_t x = range.min_x; x <= range.max_x; ++x)
            for (std::int64_t y = range.min_y; y <= range.max_y; ++y)
                columns_[{static_cast<std::int32_t>(x), static_cast<std::int32_t>(y)}].push_back(tile);
    }
    for (const auto& [column, tiles] : columns_)
        for (int level = kLastCellLevel + 1; !roots_.empty() && level <= roots_[0].level; ++level) {
            const int halvings = level - kLastCellLevel;
            footprints_[level].insert({column.first >> halvings, column.second >> halvings});
        }
}

bool LevelPyramid::may_exist(const CubeId& id) const {
    if (roots_.empty() || id.level < 0 || id.level > roots_[0].level) return false;
    // A pyramid is as high as the city is wide, and nearly all of it is air.
    const int above_cells = std::max(0, id.level - kLastCellLevel);
    if (id.z < lowest_ >> above_cells || id.z > highest_ >> above_cells) return false;
    if (id.level <= kLastCellLevel) return columns_.contains({id.x, id.y});
    return footprints_.at(id.level).contains({id.x, id.y});
}

LevelCubePtr LevelPyramid::cube(const CubeId& id, const CancelToken& cancel) {
    if (!may_exist(id)) return empty_cube(id);
    if (id.level <= kLastCellLevel) return cell(id, id.level);
    if (auto found = kept(id)) return found;
    const std::lock_guard lock(building_);
    return build(id, cancel);
}

std::map<std::size_t, std::string> LevelPyramid::missing() const {
    const std::lock_guard lock(mutex_);
    return missing_;
}

LevelPyramid::Stack LevelPyramid::splats_of(const Column& column, bool& incomplete) {
    Stack stack;
    for (const std::uint32_t index : columns_.at(column)) {
        std::shared_ptr<const SplatTile> tile;
        try {
            tile = tiles_.load(index);
        } catch (const Error& e) {
            if (e.kind() != ErrorKind::bad_data && e.kind() != ErrorKind::io) throw;
            incomplete = true;
            const std::lock_guard lock(mutex_);
            missing_.emplace(index, e.what());
            continue;
        }
        const LatticePoint origin = tile->frame().origin();
        for (std::size_t i = 0; i < tile->size(); ++i) {
            const LevelDisc disc = level_disc(tile->splat(i), origin, 0);
            const CubeId cell = cube_of(disc.centre, 0);
            if (Column{cell.x, cell.y} == column) stack[cell.z].push_back(disc);
        }
    }
    return stack;
}

void LevelPyramid::make_column(const Column& column, int finest) {
    bool incomplete = false;
    Stack stack = splats_of(column, incomplete);
    std::set<std::int32_t> heights;
    for (auto& [z, splats] : stack) {
        heights.insert(z);
        for (int level = 0; level <= kLastCellLevel; ++level) {
            // What is not kept need not be put in order, either.
            if (level == 0 && finest > 0) continue;
            const CubeId id{level, column.first, column.second, z};
            LevelCube cube = level == 0 ? make_leaf(id, splats) : make_level(id, splats);
            cube.children = level > 0 ? 1 : 0;
            cube.incomplete = incomplete;
            if (level > 0) splats = discs_of(cube);
            if (level >= finest) cache_.keep(std::make_shared<const LevelCube>(std::move(cube)));
        }
    }
    const std::lock_guard lock(mutex_);
    if (made_.emplace(column, MadeColumn{std::move(heights), incomplete}).second) ++columns_done_;
}

/// A cell of 64 m. When it has to be made, so are those of its column from level `finest` on.
LevelCubePtr LevelPyramid::cell(const CubeId& id, int finest) {
    const Column column{id.x, id.y};
    // What was made may have been evicted before we look: a small cache can take several turns, and in the
    // end the cell is made for this caller alone.
    for (int turn = 0; turn < 2; ++turn) {
        if (auto kept = cache_.find(id)) return kept;
        {
            const std::lock_guard lock(mutex_);
            const auto known = made_.find(column);
            if (known != made_.end() && !known->second.heights.contains(id.z))
                return empty_cube(id, known->second.incomplete);
        }
        if (turn == 0) make_column(column, finest);
    }
    bool incomplete = false;
    Stack stack = splats_of(column, incomplete);
    LevelCube cube = make_leaf({0, id.x, id.y, id.z}, std::move(stack[id.z]));
    for (int level = 1; level <= id.level; ++level) {
        cube = make_level({level, id.x, id.y, id.z}, discs_of(cube));
        cube.children = 1;
    }
    cube.incomplete = incomplete;
    return std::make_shared<const LevelCube>(std::move(cube));
}

void LevelPyramid::prepare_columns(const CubeId& id, const CancelToken& cancel) {
    const int halvings = id.level - kLastCellLevel;
    std::vector<Column> todo;
    for (std::int32_t x = id.x << halvings; x < (id.x + 1) << halvings; ++x)
        for (std::int32_t y = id.y << halvings; y < (id.y + 1) << halvings; ++y) {
            const Column column{x, y};
            if (!columns_.contains(column)) continue;
            const std::lock_guard lock(mutex_);
            if (!made_.contains(column)) todo.push_back(column);
        }
    isolated([&] {
        parallel_for(todo.size(), [&](std::size_t i) {
            if (!cancel.requested()) make_column(todo[i], kLastCellLevel);
        });
    });
    cancel.check();
}

LevelCubePtr LevelPyramid::kept(const CubeId& id) {
    if (auto found = cache_.find(id)) return found;
    if (!store_) return nullptr;
    auto stored = store_->find(store_key_, id);
    return stored ? cache_.keep(std::make_shared<const LevelCube>(std::move(*stored))) : nullptr;
}

LevelCubePtr LevelPyramid::from_octants(const CubeId& id, const CancelToken& cancel) {
    std::vector<LevelDisc> discs;
    std::uint8_t children = 0;
    bool incomplete = false;
    for (int octant = 0; octant < 8; ++octant) {
        const CubeId child{id.level - 1, 2 * id.x + (octant & 1), 2 * id.y + (octant >> 1 & 1),
                           2 * id.z + (octant >> 2)};
        if (!may_exist(child)) continue;
        const LevelCubePtr below =
            child.level <= kLastCellLevel ? cell(child, kLastCellLevel) : build(child, cancel);
        incomplete |= below->incomplete;
        if (below->discs.empty()) continue;
        children = static_cast<std::uint8_t>(children | 1 << octant);
        const auto more = discs_of(*below);
        discs.insert(discs.end(), more.begin(), more.end());
    }
    LevelCube cube = make_level(id, discs);
    cube.children = children;
    cube.incomplete = incomplete;
    if (store_ && !incomplete) store_->keep(store_key_, cube);
    return cache_.keep(std::make_shared<const LevelCube>(std::move(cube)));
}

LevelCubePtr LevelPyramid::build(const CubeId& id, const CancelToken& cancel) {
    if (auto found = kept(id)) return found;
    cancel.check();
    if (id.level <= kBatchLevel) prepare_columns(id, cancel);
    return from_octants(id, cancel);
}

}  // namespace citysplat::splat
