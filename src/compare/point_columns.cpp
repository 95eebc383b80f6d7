#include "compare/point_columns.hpp"

#include <cmath>

namespace citysplat::compare {

namespace {

constexpr std::size_t kBufferPoints = 4096;

}  // namespace

PointColumns::PointColumns(const std::filesystem::path& directory, double halo_m, std::size_t most_waiting)
    : halo_m_(halo_m), most_waiting_(most_waiting), file_(temporary_file(directory)) {}

void PointColumns::add(const PointBatch& batch, const Region* only) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (!batch.withheld.empty() && batch.withheld[i]) continue;
        const double x = batch.x[i], y = batch.y[i];
        if (only && !(std::abs(x) <= kMaxWorld_m && std::abs(y) <= kMaxWorld_m &&
                      only->contains(to_lattice(x), to_lattice(y))))
            continue;
        const std::uint16_t label = batch.label.empty() ? std::uint16_t{0} : batch.label[i];
        const auto cell = [](double v) { return static_cast<std::int64_t>(std::floor(v / kSize_m)); };
        for (std::int64_t cx = cell(x - halo_m_); cx <= cell(x + halo_m_); ++cx)
            for (std::int64_t cy = cell(y - halo_m_); cy <= cell(y + halo_m_); ++cy)
                put({cx, cy}, {static_cast<float>(x - static_cast<double>(cx) * kSize_m),
                               static_cast<float>(y - static_cast<double>(cy) * kSize_m),
                               static_cast<float>(batch.z[i]), label, 0});
    }
}

void PointColumns::put(Column column, const ColumnPoint& point) {
    Bucket& bucket = buckets_[column];
    bucket.buffer.push_back(point);
    ++waiting_;
    if (bucket.buffer.size() == kBufferPoints) flush(bucket);
    // A wide city has more columns than there is memory for buffers.
    if (waiting_ >= most_waiting_)
        for (auto& [other, waiting] : buckets_) flush(waiting);
}

void PointColumns::flush(Bucket& bucket) {
    if (bucket.buffer.empty()) return;
    const auto bytes = std::as_bytes(std::span(bucket.buffer));
    file_.write_at(end_, bytes);
    bucket.chunks.emplace_back(end_, static_cast<std::uint32_t>(bucket.buffer.size()));
    end_ += bytes.size();
    waiting_ -= bucket.buffer.size();
    bucket.buffer = {};
}

void PointColumns::finish() {
    for (auto& [column, bucket] : buckets_) {
        flush(bucket);
        columns_.push_back(column);
    }
}

std::vector<ColumnPoint> PointColumns::read(Column column) const {
    std::vector<ColumnPoint> points;
    const auto found = buckets_.find(column);
    if (found == buckets_.end()) return points;
    std::size_t total = 0;
    for (const auto& [offset, count] : found->second.chunks) total += count;
    points.resize(total);
    std::size_t at = 0;
    for (const auto& [offset, count] : found->second.chunks) {
        file_.read_at(offset, std::as_writable_bytes(std::span(points).subspan(at, count)));
        at += count;
    }
    return points;
}

}  // namespace citysplat::compare
