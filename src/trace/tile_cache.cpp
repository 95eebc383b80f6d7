#include "trace/tile_cache.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace citysplat::trace {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TileCache::TileCache(const TileSource& source, const Tracer& tracer, const CacheOptions& options)
    : source_(source), tracer_(tracer), options_(options), slots_(source.tiles().size()) {
    for (const TileEntry& entry : source.tiles())
        bytes_.push_back(has_triangles(source.kind()) ? tracer.estimated_mesh_bytes(entry.splats)
                                                      : tracer.estimated_bytes(entry.splats));
    for (int i = 0; i < std::max(1, options.loaders); ++i) loaders_.emplace_back([this] { run_loader(); });
}

TileCache::~TileCache() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    work_.notify_all();
    for (std::thread& t : loaders_) t.join();
}

void TileCache::plan(std::vector<std::uint32_t> upcoming) {
    if (!options_.prefetch) return;
    {
        const std::lock_guard lock(mutex_);
        // All of the last plan, also what is loaded by now: it may be behind us and make room.
        for (const std::uint32_t tile : planned_) slots_[tile].planned = false;
        plan_.assign(upcoming.begin(), upcoming.end());
        planned_ = std::move(upcoming);
        for (const std::uint32_t tile : planned_) slots_[tile].planned = true;
    }
    work_.notify_all();
}

TileCache::Acquired TileCache::acquire(std::span<const std::uint32_t> tiles, const CancelToken& cancel) {
    const auto begin = Clock::now();
    std::unique_lock lock(mutex_);
    for (const std::uint32_t tile : pinned_) slots_[tile].pinned = false;
    pinned_.assign(tiles.begin(), tiles.end());
    demand_.clear();
    for (const std::uint32_t tile : pinned_) {
        Slot& slot = slots_[tile];
        slot.pinned = true;
        if (slot.state == State::absent) demand_.push_back(tile);
        if (slot.state == State::resident) recency_.splice(recency_.end(), recency_, slot.place);
    }
    work_.notify_all();
    const auto all_there = [&] {
        return failure_ || std::all_of(pinned_.begin(), pinned_.end(), [&](std::uint32_t tile) {
                   return slots_[tile].state == State::resident || slots_[tile].state == State::missing;
               });
    };
    constexpr std::chrono::milliseconds kPatience{100};
    while (!ready_.wait_for(lock, kPatience, all_there)) cancel.check();
    statistics_.wait_s += seconds_since(begin);
    if (failure_) std::rethrow_exception(failure_);
    Acquired result;
    for (const std::uint32_t tile : pinned_) {
        if (slots_[tile].state == State::resident)
            result.tiles.push_back(slots_[tile].tile);
        else
            result.missing.push_back(tile);
    }
    return result;
}

CacheStatistics TileCache::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

void TileCache::run_loader() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        if (const auto tile = next())
            load(*tile, lock);
        else
            work_.wait(lock);
    }
}

std::optional<std::uint32_t> TileCache::next() {
    if (failure_) return std::nullopt;
    const auto take = [this](std::deque<std::uint32_t>& queue,
                             bool demanded) -> std::optional<std::uint32_t> {
        while (!queue.empty()) {
            const std::uint32_t tile = queue.front();
            if (slots_[tile].state != State::absent || (!demanded && slots_[tile].refused_ahead)) {
                queue.pop_front();
                continue;
            }
            if (!make_room(bytes_[tile], demanded)) return std::nullopt;
            queue.pop_front();
            return tile;
        }
        return std::nullopt;
    };
    if (const auto tile = take(demand_, true)) return tile;
    // While demand waits for room, a prefetch must not take it.
    return demand_.empty() ? take(plan_, false) : std::nullopt;
}

bool TileCache::make_room(std::uint64_t wanted, bool demanded) {
    for (const bool spare_planned : {true, false}) {
        auto it = recency_.begin();
        while (used_bytes_ + wanted > options_.budget_bytes && it != recency_.end()) {
            const std::uint32_t tile = *it++;
            if (!slots_[tile].pinned && !(spare_planned && slots_[tile].planned)) evict(tile);
        }
        if (used_bytes_ + wanted <= options_.budget_bytes) return true;
        if (!demanded) return false;
    }
    return false;
}

void TileCache::evict(std::uint32_t tile) {
    Slot& slot = slots_[tile];
    recency_.erase(slot.place);
    slot.tile.reset();
    slot.state = State::absent;
    used_bytes_ -= bytes_[tile];
    ++statistics_.tiles_evicted;
}

void TileCache::load(std::uint32_t tile, std::unique_lock<std::mutex>& lock) {
    slots_[tile].state = State::loading;
    used_bytes_ += bytes_[tile];
    lock.unlock();

    const auto begin = Clock::now();
    TracerTilePtr loaded;
    std::exception_ptr failure;
    bool damaged = false;
    try {
        SplatTile splats;
        MeshTile mesh;
        const bool is_mesh = has_triangles(source_.kind());
        if (is_mesh)
            mesh = source_.load_mesh(tile);
        else
            splats = source_.load(tile);
        try {
            loaded = is_mesh ? tracer_.load(mesh) : tracer_.load(splats);
        } catch (const CorruptionError& e) {
            throw CorruptionError("tile " + source_.tiles()[tile].key.text() + ": " + e.what());
        }
    } catch (const CorruptionError&) {
        damaged = true;
        failure = std::current_exception();
    } catch (...) {
        failure = std::current_exception();
    }
    const std::uint64_t resident = tracer_.resident_bytes();

    lock.lock();
    statistics_.load_s += seconds_since(begin);
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, resident);
    Slot& slot = slots_[tile];
    if (loaded) {
        ++statistics_.tiles_loaded;
        slot.tile = std::move(loaded);
        slot.state = State::resident;
        slot.refused_ahead = false;
        slot.place = recency_.insert(recency_.end(), tile);
    } else {
        used_bytes_ -= bytes_[tile];
        const bool tolerated = damaged && options_.allow_missing;
        // Perhaps nobody will need what was planned: who does, loads it once more and is told.
        slot.refused_ahead = !tolerated && !slot.pinned;
        slot.state = slot.refused_ahead ? State::absent : State::missing;
        if (!tolerated && slot.pinned) failure_ = failure;
    }
    ready_.notify_all();
    work_.notify_all();
}

}  // namespace citysplat::trace
