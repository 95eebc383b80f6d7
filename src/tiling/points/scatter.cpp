#include "tiling/points/scatter.hpp"

#include <algorithm>
#include <unistd.h>

namespace citysplat::tiling {

namespace {

/// Smaller chunks are copied together: a shuffled file brings a few points per sector and block.
constexpr std::size_t kSmallChunk = 256;
constexpr std::size_t kReadPoints = std::size_t{1} << 16;

}  // namespace

Scatter::Scatter(std::filesystem::path spill_file, std::uint64_t budget_bytes)
    : spill_path_(std::move(spill_file)), budget_bytes_(budget_bytes) {}

Scatter::~Scatter() {
    if (spill_file_.is_open()) ::unlink(spill_path_.c_str());
}

void Scatter::add(const Sector& sector, std::vector<TilePoint> points) {
    std::unique_lock lock(mutex_);
    spilled_.wait(lock, [this] { return !spilling_; });
    Bucket& bucket = buckets_[sector];
    bucket.points += points.size();
    const std::uint64_t small_before = bucket.small.capacity() * sizeof(TilePoint);
    std::uint64_t grown = 0;
    if (points.size() < kSmallChunk) {
        bucket.small.insert(bucket.small.end(), points.begin(), points.end());
        grown = bucket.small.capacity() * sizeof(TilePoint) - small_before;
    } else {
        grown = points.capacity() * sizeof(TilePoint);
        bucket.chunks.push_back(std::move(points));
    }
    bucket.bytes += grown;
    bytes_ += grown;
    if (bytes_ > budget_bytes_) spill(lock);
}

void Scatter::spill(std::unique_lock<std::mutex>& lock) {
    spilling_ = true;
    struct Done {
        Scatter& self;
        std::unique_lock<std::mutex>& lock;
        ~Done() {
            if (!lock.owns_lock()) lock.lock();
            self.spilling_ = false;
            self.spilled_.notify_all();
        }
    } done{*this, lock};
    std::vector<Bucket*> fullest;
    for (auto& [sector, bucket] : buckets_) fullest.push_back(&bucket);
    std::sort(fullest.begin(), fullest.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
    if (!spill_file_.is_open()) {
        spill_file_ = File(spill_path_, File::Mode::read_write);
    }
    lock.unlock();  // nobody touches the buckets while spilling_ is set
    for (Bucket* bucket : fullest) {
        if (bytes_ <= budget_bytes_ / 2) break;
        write(*bucket);
    }
}

void Scatter::write(Bucket& bucket) {
    const std::uint64_t begin = spill_end_;
    std::uint64_t points = 0;
    const auto append = [&](const std::vector<TilePoint>& chunk) {
        if (chunk.empty()) return;
        spill_file_.write_at(spill_end_, std::as_bytes(std::span(chunk)));
        spill_end_ += chunk.size() * sizeof(TilePoint);
        points += chunk.size();
    };
    for (const auto& chunk : bucket.chunks) append(chunk);
    append(bucket.small);
    bucket.runs.push_back({begin, points});
    bucket.chunks = {};
    bucket.small = {};
    bytes_ -= bucket.bytes;
    bucket.bytes = 0;
}

std::vector<std::pair<Sector, std::uint64_t>> Scatter::sectors() const {
    std::vector<std::pair<Sector, std::uint64_t>> list;
    for (const auto& [sector, bucket] : buckets_) list.emplace_back(sector, bucket.points);
    return list;
}

std::vector<TilePoint> Scatter::take(const Sector& sector, int first_column, int last_column) {
    Bucket& bucket = buckets_.at(sector);
    const bool all = first_column == 0 && last_column == kCellsPerSide;
    std::vector<TilePoint> out;
    if (all) out.reserve(bucket.points);
    const auto collect = [&](std::span<const TilePoint> points) {
        if (all) {
            out.insert(out.end(), points.begin(), points.end());
            return;
        }
        for (const TilePoint& p : points) {
            const int column = p.x >> kCellShift;
            if (column >= first_column && column < last_column) out.push_back(p);
        }
    };
    for (auto& chunk : bucket.chunks) {
        collect(chunk);
        if (all) chunk = {};
    }
    collect(bucket.small);
    std::vector<TilePoint> buffer;
    for (const Run& run : bucket.runs)
        for (std::uint64_t at = 0; at < run.points; at += buffer.size()) {
            buffer.resize(std::min<std::uint64_t>(kReadPoints, run.points - at));
            spill_file_.read_at(run.offset + at * sizeof(TilePoint),
                                std::as_writable_bytes(std::span(buffer)));
            collect(buffer);
        }
    if (last_column == kCellsPerSide) {
        bucket.chunks = {};
        bucket.small = {};
    }
    return out;
}

}  // namespace citysplat::tiling
