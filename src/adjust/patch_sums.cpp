#include "adjust/patch_sums.hpp"

#include <algorithm>
#include <queue>

namespace citysplat::adjust {

namespace {

constexpr std::uint64_t kReadAhead = 4096;  ///< sums
/// More are not sorted at once: that takes 0.2 s, in which nobody can interrupt.
constexpr std::uint64_t kMostSorted = 400'000;

/// One sorted run of a file, read bit by bit.
class RunReader {
  public:
    RunReader(const File& file, std::uint64_t begin, std::uint64_t end)
        : file_(file), next_(begin), end_(end) {
        fill();
    }
    bool done() const { return at_ == buffer_.size(); }
    const PatchSums& front() const { return buffer_[at_]; }
    void pop() {
        if (++at_ == buffer_.size()) fill();
    }

  private:
    void fill() {
        buffer_.resize(static_cast<std::size_t>(std::min(kReadAhead, end_ - next_)));
        at_ = 0;
        file_.read_at(next_ * sizeof(PatchSums), std::as_writable_bytes(std::span(buffer_)));
        next_ += buffer_.size();
    }

    const File& file_;
    std::uint64_t next_, end_;
    std::vector<PatchSums> buffer_;
    std::size_t at_ = 0;
};

}  // namespace

PatchSums PatchSums::of(const LatticePoint& at) {
    const auto cube = [](std::int64_t v) { return static_cast<std::int32_t>(v >> kEdgeBits); };
    const auto offset = [](std::int64_t v) { return v & ((std::int64_t{1} << kEdgeBits) - 1); };
    const std::int64_t x = offset(at.x), y = offset(at.y), z = offset(at.z);
    return {.px = cube(at.x),
            .py = cube(at.y),
            .pz = cube(at.z),
            .slot = 0,
            .points = 1,
            .reserved = 0,
            .sum = {x, y, z},
            .second = {x * x, x * y, x * z, y * y, y * z, z * z},
            .ticks = 0};
}

Vec3d PatchSums::origin_m() const {
    constexpr double kEdge_m = kLatticeStep_m * (1 << kEdgeBits);
    return {px * kEdge_m, py * kEdge_m, pz * kEdge_m};
}

void PatchSums::join(const PatchSums& other) {
    points += other.points;
    for (int i = 0; i < 3; ++i) sum[i] += other.sum[i];
    for (int i = 0; i < 6; ++i) second[i] += other.second[i];
    ticks += other.ticks;
}

void sort_and_join(std::vector<PatchSums>& sums) {
    std::sort(sums.begin(), sums.end(),
              [](const PatchSums& a, const PatchSums& b) { return a.key() < b.key(); });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (kept > 0 && sums[kept - 1].key() == sums[i].key())
            sums[kept - 1].join(sums[i]);
        else
            sums[kept++] = sums[i];
    }
    sums.resize(kept);
}

PatchRuns::PatchRuns(std::filesystem::path scratch, std::uint64_t budget_bytes)
    : scratch_(std::move(scratch)),
      most_waiting_(static_cast<std::size_t>(std::min(kMostSorted, budget_bytes / sizeof(PatchSums)))) {}

void PatchRuns::add(const std::vector<PatchSums>& sums) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + sums.size() > most_waiting_) {
        sort_and_join(waiting_);
        if (waiting_.size() + sums.size() > most_waiting_ / 2) spill();
    }
    // Grows by a quarter, not by doubling: the budget is for the sums, not for their growth.
    if (waiting_.capacity() < waiting_.size() + sums.size())
        waiting_.reserve(std::max(waiting_.size() + sums.size(), waiting_.size() / 4 * 5));
    waiting_.insert(waiting_.end(), sums.begin(), sums.end());
}

void PatchRuns::spill() {
    if (waiting_.empty()) return;
    if (!file_.is_open()) file_ = temporary_file(scratch_);
    const std::uint64_t begin = runs_.empty() ? 0 : runs_.back().end;
    file_.append(std::as_bytes(std::span(waiting_)));
    runs_.push_back({begin, begin + waiting_.size()});
    waiting_.clear();
}

void PatchRuns::merge(const CancelToken& cancel, const std::function<void(const PatchSums&)>& visit) {
    sort_and_join(waiting_);
    if (runs_.empty()) {
        for (const PatchSums& sums : waiting_) visit(sums);
        waiting_ = {};
        return;
    }
    spill();
    waiting_ = {};
    std::vector<RunReader> readers;
    for (const auto [begin, end] : runs_) readers.emplace_back(file_, begin, end);
    const auto later = [&](std::size_t a, std::size_t b) {
        return readers[b].front().key() < readers[a].front().key();
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
    for (std::size_t i = 0; i < readers.size(); ++i) next.push(i);
    while (!next.empty()) {
        cancel.check();
        PatchSums sums = readers[next.top()].front();
        for (bool first = true; !next.empty(); first = false) {
            const std::size_t reader = next.top();
            if (readers[reader].front().key() != sums.key()) break;
            if (!first) sums.join(readers[reader].front());
            next.pop();
            readers[reader].pop();
            if (!readers[reader].done()) next.push(reader);
        }
        visit(sums);
    }
}

}  // namespace citysplat::adjust
