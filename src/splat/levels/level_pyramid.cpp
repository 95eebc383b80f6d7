#include "splat/levels/level_pyramid.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

namespace citysplat::splat {

namespace {

/// From this level down the columns below a cube are made together: 64 of them.
constexpr int kBatchLevel = 6;

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

LevelPyramid::LevelPyramid(const TileSource& city, const PyramidOptions& options)
    : cubes_(city),
      tiles_(city, &TileSource::load, options.tile_bytes),
      cache_(options.cache_bytes),
      store_(options.store),
      store_key_(options.store_key) {}

LevelCubePtr LevelPyramid::cube(const CubeId& id, const CancelToken& cancel) {
    if (!cubes_.may_exist(id)) return empty_cube(id);
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
    for (const std::uint32_t index : cubes_.tiles_at(column)) {
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
            if (!cubes_.has_column(column)) continue;
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
        const CubeId child = id.octant(octant);
        if (!cubes_.may_exist(child)) continue;
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
