#include "sim/recorded/empty_rays.hpp"

#include "core/math/math_hd.hpp"
#include "sim/recorded/angles.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace citysplat::sim {

namespace {

/// Where the returns of a sweep lie along it. A place is an azimuth, counted on over the seam where a sweep
/// is more than a turn. Beams may look ahead of the head or behind it; `begin` and `end` are places of the
/// head.
struct Sweep {
    std::vector<double> place;    ///< of each return, radians
    std::vector<double> of_head;  ///< of the head when it was fired, or little behind; only in firing order
    std::vector<double> ahead;    ///< of each beam: of the head, or of what is little behind it
    double zero_azimuth_rad = 0;  ///< the azimuth of place 0
    double begin = 0, end = kTurn_rad;
    bool closed = false;  ///< the end is the beginning: a turn without a gap
    double time_begin_s = 0, time_end_s = 0;

    double time_at(double head) const {
        const double share = end > begin ? std::clamp((head - begin) / (end - begin), 0.0, 1.0) : 0;
        return time_begin_s + share * (time_end_s - time_begin_s);
    }
    /// Of a ray of which only azimuth and time are known.
    double place_of(const RecordedRay& ray) const {
        const double turn = turned(ray.azimuth_rad - zero_azimuth_rad);
        if (of_head.empty() || time_end_s == time_begin_s) return turn;
        const double near = begin + (ray.time_s - time_begin_s) / (time_end_s - time_begin_s) * (end - begin);
        return near + wrapped(turn - near);
    }
};

/// The sweep of returns in the order in which they were fired: the azimuth of the head moves slowly from one
/// to the next, whatever the beams are offset by. Nothing when they are in another order.
std::optional<Sweep> in_firing_order(std::span<const RecordedRay> returns) {
    constexpr double kNearHead_rad = 30 * kDegree_rad;
    constexpr double kFollow = 0.05;
    constexpr std::size_t kMostAstray = 20;  // one in so many
    Sweep sweep;
    sweep.zero_azimuth_rad = returns[0].azimuth_rad;
    double head = 0;
    std::size_t astray = 0;
    for (const RecordedRay& r : returns) {
        const double off = wrapped(r.azimuth_rad - sweep.zero_azimuth_rad - head);
        astray += std::fabs(off) > kNearHead_rad;
        sweep.place.push_back(head + off);
        head += kFollow * off;
        sweep.of_head.push_back(head);
    }
    const auto [least, most] = std::minmax_element(sweep.of_head.begin(), sweep.of_head.end());
    // Returns that are ordered by ring, or not at all, make a head that turns many times, or none.
    const double turned_rad = *most - *least;
    if (astray * kMostAstray > returns.size() || turned_rad < 0.1 || turned_rad > 1.5 * kTurn_rad)
        return std::nullopt;
    return sweep;
}

/// The sweep of returns in any order: from one side of the widest gap to the other, or closed.
Sweep in_any_order(std::span<const RecordedRay> returns) {
    constexpr double kSeam_rad = 5 * kDegree_rad;
    std::vector<double> azimuths;
    for (const RecordedRay& r : returns) azimuths.push_back(turned(r.azimuth_rad));
    std::sort(azimuths.begin(), azimuths.end());
    double widest = azimuths.front() + kTurn_rad - azimuths.back(), begin = azimuths.front();
    for (std::size_t i = 1; i < azimuths.size(); ++i)
        if (azimuths[i] - azimuths[i - 1] > widest)
            widest = azimuths[i] - azimuths[i - 1], begin = azimuths[i];
    Sweep sweep;
    sweep.zero_azimuth_rad = begin;
    sweep.closed = widest < kSeam_rad;
    if (!sweep.closed) sweep.end = kTurn_rad - widest;
    for (const RecordedRay& r : returns) sweep.place.push_back(turned(r.azimuth_rad - begin));
    return sweep;
}

/// The returns of one beam by place.
using BeamReturns = std::vector<std::pair<double, std::uint32_t>>;

std::vector<BeamReturns> by_beam(const Sweep& sweep, std::span<const RecordedRay> returns,
                                 std::size_t beams) {
    std::vector<BeamReturns> lists(beams);
    for (std::size_t i = 0; i < returns.size(); ++i)
        if (returns[i].beam < beams)
            lists[returns[i].beam].emplace_back(sweep.place[i], static_cast<std::uint32_t>(i));
    for (BeamReturns& list : lists) std::sort(list.begin(), list.end());
    return lists;
}

/// Median distance of the first returns of the beams from their median, when each is moved back by `ahead`.
double spread_of_first(const std::vector<BeamReturns>& lists, const std::vector<double>& ahead) {
    std::vector<double> first;
    for (std::size_t b = 0; b < lists.size(); ++b)
        if (!lists[b].empty()) first.push_back(lists[b].front().first - ahead[b]);
    const double middle = median_of(first);
    for (double& place : first) place = std::fabs(place - middle);
    return median_of(first);
}

/// What the beams are ahead of the head by. Those of few returns are as the others are.
void measure_beams_ahead(Sweep& sweep, const std::vector<BeamReturns>& lists) {
    constexpr std::size_t kEnough = 8;
    sweep.ahead.assign(lists.size(), 0);
    if (sweep.of_head.empty()) return;
    std::vector<double> known;
    for (std::size_t b = 0; b < lists.size(); ++b) {
        if (lists[b].size() < kEnough) continue;
        std::vector<double> ahead;
        for (const auto& [place, index] : lists[b]) ahead.push_back(place - sweep.of_head[index]);
        sweep.ahead[b] = median_of(ahead);
        known.push_back(sweep.ahead[b]);
    }
    if (known.empty()) return;
    const double usual = median_of(known);
    for (std::size_t b = 0; b < lists.size(); ++b)
        if (lists[b].size() < kEnough) sweep.ahead[b] = usual;
    // Drivers cut sweeps when the head passes an azimuth, or where the rays do. Then all beams begin at one
    // azimuth, whatever they are ahead by.
    if (spread_of_first(lists, std::vector<double>(lists.size(), 0)) < spread_of_first(lists, sweep.ahead))
        sweep.ahead.assign(lists.size(), 0);
}

/// Beginning and end of a sweep in firing order, and the times there: the head turns evenly.
void measure_ends(Sweep& sweep, std::span<const RecordedRay> returns) {
    std::vector<std::pair<double, double>> heads;  // place of the head, time
    const double time_s = returns[0].time_s;
    for (std::size_t i = 0; i < returns.size(); ++i)
        if (returns[i].beam < sweep.ahead.size())
            heads.emplace_back(sweep.place[i] - sweep.ahead[returns[i].beam], returns[i].time_s - time_s);
    sweep.time_begin_s = sweep.time_end_s = time_s;
    if (heads.empty()) return;
    std::sort(heads.begin(), heads.end());
    const std::size_t n = heads.size(), stray = n / 2000, quarter = (n + 3) / 4;
    if (!sweep.of_head.empty()) {
        sweep.begin = heads[stray].first;
        sweep.end = heads[n - 1 - stray].first;
    }
    // A straight line through the means of the first and the last quarter.
    const auto mean = [&](std::size_t first) {
        std::pair<double, double> sum{0, 0};
        for (std::size_t i = first; i < first + quarter; ++i)
            sum.first += heads[i].first, sum.second += heads[i].second;
        return std::pair{sum.first / static_cast<double>(quarter), sum.second / static_cast<double>(quarter)};
    };
    const auto [place_a, time_a] = mean(0);
    const auto [place_b, time_b] = mean(n - quarter);
    if (!(place_b > place_a)) return;
    const double s_per_rad = (time_b - time_a) / (place_b - place_a);
    sweep.time_begin_s = time_s + time_a + s_per_rad * (sweep.begin - place_a);
    sweep.time_end_s = time_s + time_a + s_per_rad * (sweep.end - place_a);
}

/// The azimuth step: the mean of the gaps below kWidestStep medians. Double returns of one pulse are no gaps.
/// 0 when there are no neighbours.
struct Step {
    double median = 0, mean = 0;
};
Step measured_step(const std::vector<BeamReturns>& lists) {
    constexpr double kSamePulse_rad = 0.01 * kDegree_rad;
    std::vector<double> gaps;
    for (const BeamReturns& list : lists)
        for (std::size_t i = 1; i < list.size(); ++i)
            if (list[i].first - list[i - 1].first > kSamePulse_rad)
                gaps.push_back(list[i].first - list[i - 1].first);
    if (gaps.empty()) return {};
    std::sort(gaps.begin(), gaps.end());
    Step step{gaps[gaps.size() / 2], 0};
    std::size_t n = 0;
    for (; n < gaps.size() && gaps[n] <= kWidestStep * step.median; ++n) step.mean += gaps[n];
    step.mean /= static_cast<double>(n);
    return step;
}

/// What a gap lies between: a return, or the end of the sweep.
struct GapEnd {
    double place;
    Vec3d origin;
    double elevation_rad;
};

/// Puts empty rays into the gaps of a sweep.
class GapFiller {
  public:
    GapFiller(const Sweep& sweep, const Step& step, const SensorRotation& rotation, RecordedScan& scan)
        : sweep_(sweep), step_(step), rotation_(rotation), scan_(scan) {}

    /// `elevation_rad` is where a beam looks that has no return at all.
    void fill(const BeamReturns& list, std::uint16_t beam, double elevation_rad) {
        const auto end_at = [&](std::size_t i) {
            const RecordedRay& r = scan_.rays[list[i].second];
            return GapEnd{list[i].first, r.origin, r.elevation_rad};
        };
        for (std::size_t i = 1; i < list.size(); ++i) fill_between(end_at(i - 1), end_at(i), beam);
        const bool none = list.empty();
        GapEnd first = none ? GapEnd{0, scan_.world_from_sensor.translation, elevation_rad} : end_at(0);
        GapEnd last = none ? first : end_at(list.size() - 1);
        if (sweep_.closed && !none) {
            first.place += kTurn_rad;
            return fill_between(last, first, beam);
        }
        // One step outside, so that the first ray may be at the very beginning.
        const double ahead = sweep_.ahead[beam];
        GapEnd before = first, after = last;
        before.place = sweep_.begin + ahead - step_.mean;
        after.place = sweep_.end + ahead + (sweep_.closed ? 0 : step_.mean);
        if (none) return fill_between(before, after, beam);
        fill_between(before, first, beam);
        fill_between(last, after, beam);
    }

    const std::vector<double>& places() const { return places_; }  ///< of the rays that were added

  private:
    void fill_between(const GapEnd& a, const GapEnd& b, std::uint16_t beam) {
        const double gap = b.place - a.place;
        if (!(gap > kWidestStep * step_.median)) return;
        const double steps = std::floor(gap / step_.mean + 0.5);
        for (double k = 1; k < steps; ++k) {
            const double share = k / steps;
            RecordedRay ray;
            places_.push_back(a.place + share * gap);
            ray.beam = beam;
            ray.time_s = sweep_.time_at(places_.back() - sweep_.ahead[beam]);
            ray.origin = a.origin + share * (b.origin - a.origin);
            ray.azimuth_rad = wrapped(places_.back() + sweep_.zero_azimuth_rad);
            ray.elevation_rad = a.elevation_rad + share * (b.elevation_rad - a.elevation_rad);
            const exact::SinCos az = exact::sin_cos(ray.azimuth_rad), el = exact::sin_cos(ray.elevation_rad);
            const Vec3d local{el.cos * az.cos, el.cos * az.sin, el.sin};
            ray.direction = normalized(rotate(rotation_(ray.time_s), local));
            scan_.rays.push_back(ray);
        }
    }

    const Sweep& sweep_;
    const Step& step_;
    const SensorRotation& rotation_;
    RecordedScan& scan_;
    std::vector<double> places_;
};

}  // namespace

void add_empty_rays(const BeamTable& table, const SensorRotation& rotation, RecordedScan& scan) {
    if (scan.returns == 0) return;
    const auto returns = std::span<const RecordedRay>(scan.rays).first(scan.returns);
    auto ordered = in_firing_order(returns);
    Sweep sweep = ordered ? std::move(*ordered) : in_any_order(returns);
    const std::vector<BeamReturns> lists = by_beam(sweep, returns, table.size());
    measure_beams_ahead(sweep, lists);
    measure_ends(sweep, returns);
    const Step step = measured_step(lists);
    if (step.mean == 0) return;
    std::vector<double>& places = sweep.place;
    if (scan.rays.size() > scan.returns) {
        for (std::size_t i = scan.returns; i < scan.rays.size(); ++i)
            places.push_back(sweep.place_of(scan.rays[i]));
    } else {
        GapFiller filler(sweep, step, rotation, scan);
        for (std::size_t b = 0; b < lists.size(); ++b)
            filler.fill(lists[b], static_cast<std::uint16_t>(b), table.elevation_rad[b]);
        places.insert(places.end(), filler.places().begin(), filler.places().end());
    }
    const auto [first, last] = std::minmax_element(places.begin(), places.end());
    scan.beams = table.size();
    scan.azimuth_step_rad = step.mean;
    // Rounded, so that a little jitter does not put two rays into one column.
    const auto column_of = [&, begin = *first](double place) {
        return static_cast<std::uint32_t>(std::floor((place - begin) / step.mean + 0.5));
    };
    scan.columns = column_of(*last) + 1;
    for (std::size_t i = 0; i < scan.rays.size(); ++i) scan.rays[i].column = column_of(places[i]);
}

}  // namespace citysplat::sim
