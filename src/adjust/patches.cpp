#include "adjust/patches.hpp"

#include "adjust/patch_sums.hpp"
#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace citysplat::adjust {

namespace {

constexpr std::uint64_t kWhole = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMostPatchesOfSector = 300'000;
constexpr int kPlaceBits = 3;  ///< patches of a place: 8 × 8 × 25 cm

std::uint64_t place_hash(std::int32_t px, std::int32_t py, std::uint64_t purpose) {
    return rng::key(rng::key(purpose, static_cast<std::uint64_t>(px >> kPlaceBits)),
                    static_cast<std::uint64_t>(py >> kPlaceBits));
}

/// Hashes up to this belong to the sample.
std::uint64_t threshold(std::uint64_t wanted, std::uint64_t all) {
    if (all <= wanted) return kWhole;
    return static_cast<std::uint64_t>(std::ldexp(static_cast<double>(wanted) / static_cast<double>(all), 64));
}

/// Turns blocks of one drive's points into sums. One per block.
class BlockReader {
  public:
    /// `sample`: hashes of places up to this take part.
    BlockReader(const Correction& knots, std::uint32_t first_slot, const PatchOptions& options,
                std::uint64_t sample, Sights& sights)
        : knots_(knots),
          path_(&knots.given()),
          first_slot_(first_slot),
          options_(options),
          sample_(sample),
          sights_(sights) {}

    void read(const PointFile& file, std::size_t block) {
        file.read_block(block, batch_);
        counts.read += batch_.size();
        if (batch_.gps_time.empty()) {
            counts.without_time += batch_.size();
            return;
        }
        for (std::size_t i = 0; i < batch_.size(); ++i) add(i);
        counts.used += sums.size();
        sort_and_join(sums);
    }

    std::vector<PatchSums> sums;
    PointsLeftOut counts;

  private:
    void add(std::size_t i) {
        const Vec3d p{batch_.x[i], batch_.y[i], batch_.z[i]};
        if (!(std::fabs(p.x) <= kMaxWorld_m && std::fabs(p.y) <= kMaxWorld_m &&
              std::fabs(p.z) <= kMaxWorld_m) ||
            (!batch_.withheld.empty() && batch_.withheld[i] != 0)) {
            ++counts.invalid;
            return;
        }
        const double time_s = batch_.gps_time[i];
        const auto sensor = path_.at(time_s);
        if (!sensor) {
            ++counts.outside_trajectory;
            return;
        }
        const std::size_t interval = knots_.interval_of(time_s, hint_);
        const std::uint32_t slot = first_slot_ + static_cast<std::uint32_t>(interval);
        sights_.add(slot, p - *sensor);
        const double range_m = length(p - (batch_.sensor.empty() ? *sensor : batch_.sensor[i]));
        if (range_m < options_.least_range_m) {
            ++counts.too_near;
            return;
        }
        if (!(range_m <= options_.most_range_m)) {
            ++counts.too_far;
            return;
        }
        PatchSums patch = PatchSums::of({to_lattice(p.x), to_lattice(p.y), to_lattice(p.z)});
        if (place_hash(patch.px, patch.py, 1) > sample_) {
            ++counts.not_sampled;
            return;
        }
        patch.slot = slot;
        patch.ticks = static_cast<std::int64_t>(
            std::floor(knots_.place_of(interval, time_s).share * PatchSums::kTicks + 0.5));
        sums.push_back(patch);
    }

    const Correction& knots_;
    SensorPath path_;
    std::uint32_t first_slot_;
    const PatchOptions& options_;
    std::uint64_t sample_;
    Sights& sights_;
    std::size_t hint_ = 0;
    PointBatch batch_;
};

/// Sums become patches.
class PatchMaker {
  public:
    explicit PatchMaker(std::span<const PatchStore::Drive> drives) : drives_(drives) {
        std::size_t slots = 0;
        for (const auto& drive : drives) {
            firsts_.push_back(slots);
            slots += drive.knots.intervals();
        }
    }

    Patch make(const PatchSums& s) const {
        const auto drive = static_cast<std::size_t>(
            std::upper_bound(firsts_.begin(), firsts_.end(), std::size_t{s.slot}) - firsts_.begin() - 1);
        const Correction& knots = drives_[drive].knots;
        const std::size_t interval = s.slot - firsts_[drive];
        const double n = s.points;
        const auto m = [&](std::int64_t v) { return static_cast<double>(v) * kLatticeStep_m; };
        const Vec3d mean{m(s.sum[0]) / n, m(s.sum[1]) / n, m(s.sum[2]) / n};
        const double share = static_cast<double>(s.ticks) / n / PatchSums::kTicks;
        const double begin = knots.interval_begin_s(interval);
        const double end = knots.knot_times_s().size() > 1 ? knots.knot_times_s()[interval + 1] : begin;
        const Vec3d at = s.origin_m() + mean;
        const double time_s =
            std::clamp(begin + share * (end - begin), knots.given().begin_s(), knots.given().end_s());
        const Vec3d offset = knots.given().at(time_s)->translation - at;
        // Exact sums of integers below 2²² each: the difference is exact up to one rounding.
        const auto scatter = [&](std::size_t k, int a, int b) {
            const auto product = static_cast<double>(s.sum[a]) * static_cast<double>(s.sum[b]);
            return static_cast<float>((static_cast<double>(s.second[k]) - product / n) * kLatticeStep_m *
                                      kLatticeStep_m);
        };
        return {at,
                {scatter(0, 0, 0), scatter(1, 0, 1), scatter(2, 0, 2), scatter(3, 1, 1), scatter(4, 1, 2),
                 scatter(5, 2, 2)},
                {static_cast<float>(offset.x), static_cast<float>(offset.y), static_cast<float>(offset.z)},
                static_cast<float>(n),
                static_cast<float>(share),
                s.slot};
    }

  private:
    std::span<const PatchStore::Drive> drives_;
    std::vector<std::size_t> firsts_;
};

/// Appends patches to a file by the megabyte.
class PatchWriter {
  public:
    explicit PatchWriter(File& file) : file_(file) {}
    void write(const Patch& patch) {
        buffer_.push_back(patch);
        if (buffer_.size() >= (std::size_t{1} << 20) / sizeof(Patch)) flush();
    }
    void flush() {
        file_.append(std::as_bytes(std::span(buffer_)));
        buffer_.clear();
    }

  private:
    File& file_;
    std::vector<Patch> buffer_;
};

std::uint64_t points_of(const PatchStore::Drive& drive, const CancelToken& cancel) {
    std::uint64_t points = 0;
    for (const OpenCloud& open : drive.clouds) {
        cancel.check();
        points += open()->info().points;
    }
    return points;
}

}  // namespace

Moments Patch::moments() const {
    const auto& s = scatter_m2;
    return {points, mean_m, {s[0], s[1], s[2], s[3], s[4], s[5]}};
}

Vec3d Patch::sensor_m() const {
    return mean_m + Vec3d{sensor_offset_m[0], sensor_offset_m[1], sensor_offset_m[2]};
}

PointsLeftOut& PointsLeftOut::operator+=(const PointsLeftOut& o) {
    read += o.read, used += o.used;
    without_time += o.without_time, outside_trajectory += o.outside_trajectory;
    too_near += o.too_near, too_far += o.too_far;
    not_sampled += o.not_sampled, invalid += o.invalid;
    return *this;
}

PatchStore::PatchStore(std::span<const Drive> drives, const PatchOptions& options, const Place& place,
                       Sights& sights, const Run& run)
    : file_(temporary_file(place.scratch)) {
    const CancelToken& cancel = run.cancel;
    std::uint64_t points = 0;
    for (const Drive& drive : drives) points += points_of(drive, cancel);
    const std::uint64_t sample = threshold(options.most_points, points);
    PatchRuns runs(place.scratch, place.memory_bytes / 4);
    {
        Progress::Stage stage(run.progress, "read", points, "pts");
        std::mutex counting;
        std::uint32_t first_slot = 0;
        for (const Drive& drive : drives) {
            parallel_tasks(drive.clouds.size(), [&](std::size_t c) {
                isolated([&] {
                    cancel.check();
                    const auto file = drive.clouds[c]();
                    parallel_for(file->block_count(), [&](std::size_t block) {
                        cancel.check();
                        BlockReader reader(drive.knots, first_slot, options, sample, sights);
                        reader.read(*file, block);
                        runs.add(reader.sums);
                        stage.advance(reader.counts.read);
                        const std::lock_guard lock(counting);
                        counts_ += reader.counts;
                    });
                });
            });
            first_slot += static_cast<std::uint32_t>(drive.knots.intervals());
        }
    }
    const PatchMaker maker(drives);
    PatchWriter writer(file_);
    std::pair<std::int32_t, std::int32_t> last{};
    runs.merge(cancel, [&](const PatchSums& sums) {
        if (sectors_.empty() || sums.sector() != last) sectors_.push_back({patches_, 0});
        last = sums.sector();
        ++sectors_.back().count;
        ++patches_;
        writer.write(maker.make(sums));
    });
    writer.flush();
}

std::size_t PatchStore::size_of(std::size_t sector) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(sectors_[sector].count, kMostPatchesOfSector));
}

void PatchStore::load(std::size_t sector, std::vector<Patch>& out) const {
    const auto [begin, count] = sectors_[sector];
    const std::uint64_t sample = threshold(kMostPatchesOfSector, count);
    out.clear();
    constexpr std::uint64_t kChunk = 1 << 14;
    for (std::uint64_t done = 0; done < count; done += kChunk) {
        const std::size_t kept = out.size(), now = static_cast<std::size_t>(std::min(kChunk, count - done));
        out.resize(kept + now);
        file_.read_at((begin + done) * sizeof(Patch), std::as_writable_bytes(std::span(out).subspan(kept)));
        if (sample == kWhole) continue;
        const auto unwanted = [&](const Patch& patch) {
            const PatchSums key = PatchSums::of({to_lattice(patch.mean_m.x), to_lattice(patch.mean_m.y), 0});
            return place_hash(key.px, key.py, 2) > sample;
        };
        out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(kept), out.end(), unwanted),
                  out.end());
    }
}

}  // namespace citysplat::adjust
