#include "sim/recorded/beams.hpp"

#include "core/math/math_hd.hpp"
#include "sim/recorded/angles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace citysplat::sim {

namespace {

/// Fewer returns show nothing.
constexpr std::size_t kLeastReturns = 100;

// ---- Sweeps that are stored ring by ring.

/// Neighbours of a ring differ by less than this in elevation, typically, and beams by more.
constexpr double kSameRing_rad = 0.05 * kDegree_rad;
/// A turn ends where the azimuth falls by more than this. It falls by less inside of one, too: on things that
/// are near, some lasers look past others.
constexpr double kSeam_rad = 90 * kDegree_rad;

struct Turns {
    std::vector<std::uint16_t> of_ray;
    std::vector<double> elevation_rad;  ///< mean of each turn
};

/// The turns of the azimuth, in the order of the file; nothing when that is not ring by ring.
std::optional<Turns> find_turns(std::span<const RecordedRay> returns) {
    if (returns.size() < kLeastReturns) return std::nullopt;
    std::vector<double> steps;
    std::int64_t forward = 0;
    for (std::size_t i = 1; i < returns.size(); ++i) {
        steps.push_back(std::fabs(returns[i].elevation_rad - returns[i - 1].elevation_rad));
        forward += wrapped(returns[i].azimuth_rad - returns[i - 1].azimuth_rad) > 0 ? 1 : -1;
    }
    const auto least_forward = static_cast<std::int64_t>(returns.size() / 2);
    if (median_of(steps) > kSameRing_rad || std::abs(forward) < least_forward) return std::nullopt;
    const double sign = forward > 0 ? 1 : -1;
    const auto place = [&](const RecordedRay& r) {
        return turned(sign * (r.azimuth_rad - returns[0].azimuth_rad));
    };
    Turns turns;
    std::size_t turn = 0;
    double last = 0;
    std::vector<std::uint64_t> counts;
    for (const RecordedRay& r : returns) {
        const double at = place(r);
        if (at - last < -kSeam_rad) ++turn;
        if (at - last > kTurn_rad - kSeam_rad && turn > 0) --turn;
        last = at;
        if (turn >= kMostBeams) return std::nullopt;
        if (turn >= counts.size()) counts.resize(turn + 1), turns.elevation_rad.resize(turn + 1);
        ++counts[turn];
        turns.elevation_rad[turn] += r.elevation_rad;
        turns.of_ray.push_back(static_cast<std::uint16_t>(turn));
    }
    if (counts.size() < kLeastBeams) return std::nullopt;
    for (std::size_t t = 0; t < counts.size(); ++t)
        turns.elevation_rad[t] /= static_cast<double>(std::max<std::uint64_t>(1, counts[t]));
    // Files may begin with the lowest beam.
    if (turns.elevation_rad.front() < turns.elevation_rad.back()) {
        std::reverse(turns.elevation_rad.begin(), turns.elevation_rad.end());
        for (std::uint16_t& t : turns.of_ray) t = static_cast<std::uint16_t>(counts.size() - 1 - t);
    }
    return turns;
}

/// The beam of each turn, in order, with the least sum of differences in elevation; kNoBeam for turns that
/// are none. A sweep may lack beams that returned nothing.
std::vector<std::uint16_t> match_turns(const std::vector<double>& turns, const std::vector<double>& beams) {
    const std::size_t n = turns.size(), m = beams.size();
    constexpr double kNoMatch_rad = 2 * kDegree_rad;
    // best[t][b]: cost of the first t turns with the first b beams.
    std::vector<std::vector<double>> best(n + 1, std::vector<double>(m + 1, 0));
    for (std::size_t t = 1; t <= n; ++t)
        for (std::size_t b = 0; b <= m; ++b) {
            best[t][b] = best[t - 1][b] + kNoMatch_rad;
            if (b == 0) continue;
            best[t][b] = std::min(
                {best[t][b], best[t][b - 1], best[t - 1][b - 1] + std::fabs(turns[t - 1] - beams[b - 1])});
        }
    std::vector<std::uint16_t> beam_of(n, RecordedRay::kNoBeam);
    for (std::size_t t = n, b = m; t > 0;) {
        if (b > 0 && best[t][b] == best[t][b - 1]) {
            --b;
        } else if (b > 0 && best[t][b] == best[t - 1][b - 1] + std::fabs(turns[t - 1] - beams[b - 1])) {
            beam_of[--t] = static_cast<std::uint16_t>(--b);
        } else {
            --t;
        }
    }
    return beam_of;
}

// ---- Sweeps in any other order: gaps between elevations.

/// What the frame of the poses is tilted by against the axis of the sensor.
struct Tilt {
    double cos_rad = 0, sin_rad = 0;
    double of(double cosine, double sine) const { return cos_rad * cosine + sin_rad * sine; }
};

/// The elevation of a ray, and where it looks.
struct Sighting {
    double elevation_rad, cosine, sine;
};

std::vector<Sighting> sightings_of(std::span<const RecordedRay> returns, std::size_t most) {
    std::vector<Sighting> sightings;
    const std::size_t stride = std::max<std::size_t>(1, returns.size() / most);
    for (std::size_t i = 0; i < returns.size(); i += stride) {
        const exact::SinCos a = exact::sin_cos(returns[i].azimuth_rad);
        sightings.push_back({returns[i].elevation_rad, a.cos, a.sin});
    }
    return sightings;
}

/// Counts by elevation, from −90° to 90°.
class Histogram {
  public:
    explicit Histogram(double bin_rad)
        : bin_rad_(bin_rad), counts_(static_cast<std::size_t>(exact::kPi / bin_rad) + 2) {}

    std::size_t bin(double rad) const {
        const double at = std::clamp(rad + exact::kPi / 2, 0.0, exact::kPi);
        return static_cast<std::size_t>(at / bin_rad_);
    }
    double middle_rad(std::size_t bin) const {
        return (static_cast<double>(bin) + 0.5) * bin_rad_ - exact::kPi / 2;
    }
    void clear() { std::fill(counts_.begin(), counts_.end(), 0); }
    void add(double rad) { ++counts_[bin(rad)]; }
    const std::vector<std::uint64_t>& counts() const { return counts_; }
    double sum_of_squares() const {
        double sum = 0;
        for (const std::uint64_t n : counts_) sum += static_cast<double>(n * n);
        return sum;
    }

  private:
    double bin_rad_;
    std::vector<std::uint64_t> counts_;
};

/// The tilt that makes the elevations sharpest: the sum of the squares of their histogram is largest.
/// Searched on grids that become finer.
Tilt sharpest_tilt(std::span<const RecordedRay> returns) {
    const std::vector<Sighting> sightings = sightings_of(returns, 16384);
    Histogram histogram(0.02 * kDegree_rad);
    const auto sharpness = [&](const Tilt& tilt) {
        histogram.clear();
        for (const Sighting& s : sightings) histogram.add(s.elevation_rad - tilt.of(s.cosine, s.sine));
        return histogram.sum_of_squares();
    };
    Tilt best;
    double most = sharpness(best);
    for (const double step : {0.1 * kDegree_rad, 0.025 * kDegree_rad, 0.00625 * kDegree_rad}) {
        const Tilt centre = best;
        for (int i = -4; i <= 4; ++i)
            for (int j = -4; j <= 4; ++j) {
                const Tilt tilt{centre.cos_rad + i * step, centre.sin_rad + j * step};
                const double value = sharpness(tilt);
                if (value > most) most = value, best = tilt;
            }
    }
    return best;
}

/// Elevations without the tilt, of all returns.
std::vector<double> untilted(std::span<const RecordedRay> returns) {
    const Tilt tilt = sharpest_tilt(returns);
    std::vector<double> elevations;
    elevations.reserve(returns.size());
    for (const Sighting& s : sightings_of(returns, returns.size()))
        elevations.push_back(s.elevation_rad - tilt.of(s.cosine, s.sine));
    return elevations;
}

/// Two peaks of a histogram are two beams when it falls below this share of the lower one between them.
constexpr double kValley = 0.15;

/// A peak of a histogram.
struct Peak {
    double mean_rad;
    std::uint64_t count;
};

/// The peaks of a histogram smoothed over ±`smooth` bins that have at least `least` counts.
std::vector<Peak> peaks_of(const Histogram& histogram, std::size_t smooth, std::uint64_t least) {
    const std::vector<std::uint64_t>& counts = histogram.counts();
    const std::size_t n = counts.size();
    std::vector<double> smoothed(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i < smooth ? 0 : i - smooth; j <= std::min(n - 1, i + smooth); ++j) {
            const std::size_t apart = i > j ? i - j : j - i;
            smoothed[i] += static_cast<double>(counts[j] * (smooth + 1 - apart));
        }
    struct Rise {
        double height;
        std::size_t begin;  ///< the bin of the valley before it
    };
    std::vector<Rise> rises;
    double valley = 0;
    std::size_t valley_at = 0;
    for (std::size_t i = 1; i + 1 < n; ++i) {
        if (smoothed[i] < valley) valley = smoothed[i], valley_at = i;
        if (!(smoothed[i] > smoothed[i - 1] && smoothed[i] >= smoothed[i + 1])) continue;
        if (rises.empty() || valley <= kValley * std::min(rises.back().height, smoothed[i]))
            rises.push_back({smoothed[i], rises.empty() ? 0 : valley_at});
        else
            rises.back().height = std::max(rises.back().height, smoothed[i]);
        valley = smoothed[i];
        valley_at = i;
    }
    std::vector<Peak> peaks;
    for (std::size_t p = 0; p < rises.size(); ++p) {
        const std::size_t end = p + 1 < rises.size() ? rises[p + 1].begin : n;
        std::uint64_t count = 0;
        double sum = 0;
        for (std::size_t i = rises[p].begin; i < end; ++i) {
            count += counts[i];
            sum += static_cast<double>(counts[i]) * histogram.middle_rad(i);
        }
        if (count >= least) peaks.push_back({sum / static_cast<double>(count), count});
    }
    return peaks;
}

/// Is peak `i` a side lobe of one that is at least half as high again? It is nearer to that one than a third
/// of the distance from there to the next peak that is no lower than itself: behind it, or else on the other
/// side.
bool is_side_lobe(const std::vector<Peak>& peaks, std::size_t i) {
    constexpr double kNear = 0.35;
    const auto size = static_cast<std::ptrdiff_t>(peaks.size());
    const auto at = [&](std::ptrdiff_t k) { return peaks[static_cast<std::size_t>(k)]; };
    const auto next = [&](std::ptrdiff_t from, std::ptrdiff_t step, std::uint64_t least) {
        for (from += step; from >= 0 && from < size && at(from).count < least;) from += step;
        return from >= 0 && from < size ? from : -1;
    };
    const auto self = static_cast<std::ptrdiff_t>(i);
    for (const std::ptrdiff_t side : {-1, 1}) {
        const std::ptrdiff_t higher = next(self, side, peaks[i].count * 3 / 2);
        if (higher < 0) continue;
        std::ptrdiff_t other = next(self, -side, peaks[i].count);
        if (other < 0) other = next(higher, side, peaks[i].count);
        if (other >= 0 && std::fabs(at(higher).mean_rad - peaks[i].mean_rad) <
                              kNear * std::fabs(at(higher).mean_rad - at(other).mean_rad))
            return true;
    }
    return false;
}

/// Near returns are seen under other elevations when the position of the sensor is off by a centimetre.
void remove_side_lobes(std::vector<Peak>& peaks) {
    for (std::size_t i = 0; i < peaks.size();) {
        if (is_side_lobe(peaks, i)) {
            peaks.erase(peaks.begin() + static_cast<std::ptrdiff_t>(i));
            i = 0;
        } else {
            ++i;
        }
    }
}

/// Index of the element of an ascending list that is nearest to `v`. Requires one.
std::size_t nearest_of(const std::vector<double>& ascending, double v) {
    const auto after =
        static_cast<std::size_t>(std::lower_bound(ascending.begin(), ascending.end(), v) - ascending.begin());
    if (after == 0) return 0;
    if (after == ascending.size()) return after - 1;
    return v - ascending[after - 1] <= ascending[after] - v ? after - 1 : after;
}

/// Distance from element `i` of an ascending list to its nearest neighbour in it.
double spacing_at(const std::vector<double>& ascending, std::size_t i) {
    double spacing = std::numeric_limits<double>::infinity();
    if (i > 0) spacing = ascending[i] - ascending[i - 1];
    if (i + 1 < ascending.size()) spacing = std::min(spacing, ascending[i + 1] - ascending[i]);
    return spacing;
}

/// A return farther than this from the elevation of every beam is of none.
constexpr double kFarFromBeam_rad = 1 * kDegree_rad;

/// Do most elevations lie near one of the beams, for the distance between these? Those of a cloud without
/// beams lie anywhere.
bool are_clear(const std::vector<double>& ascending, const std::vector<double>& elevations) {
    constexpr double kNear = 0.3, kMost = 0.85;
    std::size_t near = 0;
    for (const double e : elevations) {
        const std::size_t beam = nearest_of(ascending, e);
        near += std::fabs(e - ascending[beam]) < kNear * spacing_at(ascending, beam);
    }
    return static_cast<double>(near) > kMost * static_cast<double>(elevations.size());
}

std::optional<BeamTable> beams_by_elevation(std::span<const RecordedRay> returns) {
    const std::vector<double> elevations = untilted(returns);
    const std::uint64_t least = std::max<std::uint64_t>(8, returns.size() / 5000);
    Histogram histogram(0.01 * kDegree_rad);
    for (const double e : elevations) histogram.add(e);
    std::vector<Peak> peaks = peaks_of(histogram, 2, least);
    std::vector<double> known;
    for (const Peak& peak : peaks) known.push_back(peak.mean_rad);
    // Beams of few returns, which look at the sky, are scattered over many bins.
    constexpr double kSparse_rad = 0.25 * kDegree_rad;
    histogram.clear();
    for (const double e : elevations)
        if (known.empty() || std::fabs(e - known[nearest_of(known, e)]) > kSparse_rad) histogram.add(e);
    for (const Peak& sparse : peaks_of(histogram, 10, least)) peaks.push_back(sparse);
    std::sort(peaks.begin(), peaks.end(),
              [](const Peak& a, const Peak& b) { return a.mean_rad < b.mean_rad; });
    remove_side_lobes(peaks);
    std::vector<double> beams;
    for (const Peak& peak : peaks) beams.push_back(peak.mean_rad);
    if (beams.size() < kLeastBeams || beams.size() > kMostBeams || !are_clear(beams, elevations))
        return std::nullopt;
    std::reverse(beams.begin(), beams.end());
    return BeamTable{beams, {}, false};
}

// ---- Sweeps whose points say their beam.

BeamTable numbered_table(const std::map<std::uint16_t, double>& elevation_of_number) {
    std::vector<std::pair<double, std::uint16_t>> beams;
    for (const auto& [number, elevation_rad] : elevation_of_number) beams.emplace_back(elevation_rad, number);
    std::sort(beams.begin(), beams.end(), std::greater<>());
    BeamTable table;
    for (const auto& [elevation_rad, number] : beams) {
        table.elevation_rad.push_back(elevation_rad);
        table.number.push_back(number);
    }
    return table;
}

/// Nothing when they do not.
std::optional<BeamTable> beams_by_number(std::span<const RecordedRay> returns) {
    struct Sum {
        double elevation_rad = 0;
        std::uint64_t count = 0;
    };
    std::map<std::uint16_t, Sum> sums;
    for (const RecordedRay& r : returns) {
        if (r.beam == RecordedRay::kNoBeam) continue;
        sums[r.beam].elevation_rad += r.elevation_rad;
        ++sums[r.beam].count;
    }
    if (sums.empty() || sums.size() > kMostBeams) return std::nullopt;
    std::map<std::uint16_t, double> elevations;
    for (const auto& [number, sum] : sums)
        elevations[number] = sum.elevation_rad / static_cast<double>(sum.count);
    return numbered_table(elevations);
}

/// All numbers that occur, each with the elevation of the first table that has it.
BeamTable merged_by_number(std::span<const BeamTable> tables) {
    std::map<std::uint16_t, double> elevations;
    for (const BeamTable& table : tables)
        for (std::size_t b = 0; b < table.number.size(); ++b)
            elevations.emplace(table.number[b], table.elevation_rad[b]);
    return numbered_table(elevations);
}

/// By how much elevations are higher than the beams that they are nearest to: poses that were corrected for
/// one sweep more than for another tilt its beams.
double shift_from(const std::vector<double>& ascending, std::span<const double> elevations) {
    std::vector<double> off;
    for (const double e : elevations) off.push_back(e - ascending[nearest_of(ascending, e)]);
    return off.empty() ? 0 : median_of(off);
}

/// Elevations of one beam in several sweeps, whose shift is taken out, differ by less.
constexpr double kSameBeam_rad = 0.05 * kDegree_rad;

/// Is there room for a beam? One that is missing leaves a gap of twice the spacing; one that is known is
/// found near itself.
bool is_between(const std::vector<double>& ascending, double e) {
    constexpr double kInGap = 0.4;
    const auto after =
        static_cast<std::size_t>(std::lower_bound(ascending.begin(), ascending.end(), e) - ascending.begin());
    const std::size_t near = nearest_of(ascending, e);
    const bool inside = after > 0 && after < ascending.size();
    const double gap = inside ? ascending[after] - ascending[after - 1] : spacing_at(ascending, near);
    return std::fabs(e - ascending[near]) > kInGap * gap;
}

}  // namespace

std::optional<BeamTable> find_beams(std::span<const RecordedRay> returns) {
    if (returns.size() < kLeastReturns) return std::nullopt;
    if (auto numbered = beams_by_number(returns)) return numbered;
    if (auto turns = find_turns(returns)) return BeamTable{std::move(turns->elevation_rad), {}, true};
    return beams_by_elevation(returns);
}

BeamTable merged(std::span<const BeamTable> tables) {
    std::vector<const BeamTable*> by_size;
    for (const BeamTable& table : tables) by_size.push_back(&table);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const BeamTable* a, const BeamTable* b) { return a->size() < b->size(); });
    if (by_size.empty()) return {};
    if (!by_size.back()->number.empty()) return merged_by_number(tables);
    // The largest that is not the only one of its size: noise at a seam makes a ring too many.
    if (by_size.back()->ring_by_ring) {
        for (std::size_t i = by_size.size(); i-- > 1;)
            if (by_size[i]->size() == by_size[i - 1]->size()) return *by_size[i];
        return *by_size.back();
    }
    // A sweep may lack beams or show too many: what most of them show is the base.
    const BeamTable& base = *by_size[by_size.size() / 2];
    std::vector<double> ascending(base.elevation_rad.rbegin(), base.elevation_rad.rend());
    std::vector<double> missing;
    for (const BeamTable& table : tables) {
        const double shift = shift_from(ascending, table.elevation_rad);
        for (const double e : table.elevation_rad)
            if (is_between(ascending, e - shift)) missing.push_back(e - shift);
    }
    std::sort(missing.begin(), missing.end());
    // A beam that two sweeps show is one, where there are so many that chance would show one in any of them.
    const std::size_t least = tables.size() < 4 ? 1 : 2;
    for (std::size_t first = 0; first < missing.size() && ascending.size() < kMostBeams;) {
        std::size_t end = first + 1;
        while (end < missing.size() && missing[end] - missing[end - 1] < kSameBeam_rad) ++end;
        const double middle = missing[first + (end - first) / 2];
        if (end - first >= least && is_between(ascending, middle))
            ascending.insert(std::lower_bound(ascending.begin(), ascending.end(), middle), middle);
        first = end;
    }
    return {{ascending.rbegin(), ascending.rend()}, {}, false};
}

void assign_beams(const BeamTable& table, std::span<RecordedRay> rays, std::size_t return_count) {
    if (!table.number.empty()) {
        std::map<std::uint16_t, std::uint16_t> index_of;
        for (std::size_t b = 0; b < table.size(); ++b)
            index_of[table.number[b]] = static_cast<std::uint16_t>(b);
        for (RecordedRay& ray : rays) {
            const auto found = index_of.find(ray.beam);
            ray.beam = found == index_of.end() ? RecordedRay::kNoBeam : found->second;
        }
        return;
    }
    for (RecordedRay& ray : rays) ray.beam = RecordedRay::kNoBeam;
    const std::span<RecordedRay> returns = rays.first(return_count);
    if (returns.empty()) return;
    if (const auto turns = find_turns(returns)) {
        const std::vector<std::uint16_t> beam_of = match_turns(turns->elevation_rad, table.elevation_rad);
        for (std::size_t i = 0; i < returns.size(); ++i) returns[i].beam = beam_of[turns->of_ray[i]];
        return;
    }
    const std::vector<double> ascending(table.elevation_rad.rbegin(), table.elevation_rad.rend());
    const std::vector<double> elevations = untilted(returns);
    const double shift = ascending.empty() ? 0 : shift_from(ascending, elevations);
    for (std::size_t i = 0; i < returns.size(); ++i) {
        const double elevation = elevations[i] - shift;
        const std::size_t near = nearest_of(ascending, elevation);
        if (std::fabs(elevation - ascending[near]) <= kFarFromBeam_rad)
            returns[i].beam = static_cast<std::uint16_t>(ascending.size() - 1 - near);
    }
}

}  // namespace citysplat::sim
