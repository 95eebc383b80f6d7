#include "io/drive/scan_order.hpp"

#include "core/math/math_hd.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::io {

namespace {

constexpr double kTurn = 2 * exact::kPi;
/// Nearer returns move too much when a scan is compensated, and are often the car itself.
constexpr double kNear_m = 5;

double wrapped(double angle) { return angle - kTurn * std::floor(angle / kTurn + 0.5); }

/// Reorders the values.
double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Half of the values lie within this of the median. Reorders them.
double spread(std::vector<double>& values, double middle) {
    for (double& v : values) v = std::fabs(v - middle);
    return median(values);
}

struct Seen {
    std::size_t record;
    double azimuth_rad, elevation_rad;
};

std::vector<Seen> far_returns(std::span<const Vec3d> records) {
    std::vector<Seen> seen;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Vec3d& p = records[i];
        const double flat = std::sqrt(p.x * p.x + p.y * p.y);
        if (flat > kNear_m) seen.push_back({i, exact::atan2(p.y, p.x), exact::atan2(p.z, flat)});
    }
    return seen;
}

/// The elevations of the beams if there are `beams` of them and every firing has a record; empty otherwise. A
/// beam that never saw anything far away gets the step of its neighbours.
std::vector<double> elevations(const std::vector<Seen>& seen, std::size_t beams) {
    // Compensation moves the ground of the lower beams by up to a degree; records of two beams are far apart.
    constexpr double kTight_rad = 1.0 * exact::kRadPerDegree;
    std::vector<std::vector<double>> by_beam(beams);
    for (const Seen& s : seen) by_beam[s.record % beams].push_back(s.elevation_rad);
    std::vector<double> result(beams);
    std::vector<std::size_t> known;
    for (std::size_t b = 0; b < beams; ++b) {
        if (by_beam[b].size() < 8) continue;
        result[b] = median(by_beam[b]);
        if (spread(by_beam[b], result[b]) > kTight_rad) return {};
        known.push_back(b);
    }
    if (known.size() < std::max<std::size_t>(2, beams / 2)) return {};
    const auto [low, high] = std::minmax_element(
        known.begin(), known.end(), [&](std::size_t a, std::size_t b) { return result[a] < result[b]; });
    if (result[*high] - result[*low] < 2 * exact::kRadPerDegree) return {};
    // Half as many beams, each met twice?
    constexpr double kSame_rad = 0.2 * exact::kRadPerDegree;
    std::size_t pairs = 0, twice = 0;
    for (const std::size_t b : known) {
        if (b >= beams / 2 || !std::binary_search(known.begin(), known.end(), b + beams / 2)) continue;
        ++pairs;
        twice += std::fabs(result[b] - result[b + beams / 2]) < kSame_rad;
    }
    if (2 * twice > pairs) return {};
    for (std::size_t b = 0; b < beams; ++b) {
        if (std::binary_search(known.begin(), known.end(), b)) continue;
        const auto next = std::lower_bound(known.begin(), known.end(), b);
        const std::size_t k =
            std::clamp<std::size_t>(static_cast<std::size_t>(next - known.begin()), 1, known.size() - 1);
        const std::size_t from = known[k - 1], to = known[k];
        const double step = (result[to] - result[from]) / static_cast<double>(to - from);
        result[b] = result[from] + step * (static_cast<double>(b) - static_cast<double>(from));
    }
    return result;
}

/// Where the first record looks, given how far the sensor has turned at each return.
double start_azimuth(const std::vector<Seen>& seen, const ScanOrder& order, std::size_t records) {
    const double direction = order.clockwise ? -1 : 1;
    std::vector<double> off;
    double about = seen.front().azimuth_rad;
    const std::size_t first = std::max<std::size_t>(1, seen.size() / 100);
    for (std::size_t k = 0; k < first; ++k) off.push_back(wrapped(seen[k].azimuth_rad - about));
    about += median(off);
    if (order.elevations_rad.empty()) return wrapped(about);
    off.clear();
    for (const Seen& s : seen)
        off.push_back(wrapped(s.azimuth_rad - about -
                              direction * kTurn * (static_cast<double>(s.record) + 0.5) /
                                  static_cast<double>(records)));
    return wrapped(about + median(off));
}

}  // namespace

ScanOrder order_of(std::span<const Vec3d> records) {
    ScanOrder order;
    const std::vector<Seen> seen = far_returns(records);
    constexpr std::size_t kFewest = 200;
    if (seen.size() < kFewest) return order;
    double turned = 0;
    for (std::size_t k = 1; k < seen.size(); ++k)
        turned += wrapped(seen[k].azimuth_rad - seen[k - 1].azimuth_rad);
    order.by_firing = std::fabs(turned) > 0.8 * kTurn && std::fabs(turned) < 1.2 * kTurn;
    if (!order.by_firing) return order;
    order.clockwise = turned < 0;
    constexpr std::array<std::size_t, 4> kBeams{128, 64, 32, 16};
    for (const std::size_t beams : kBeams)
        if (records.size() % beams == 0 && order.elevations_rad.empty())
            order.elevations_rad = elevations(seen, beams);
    order.start_azimuth_rad = start_azimuth(seen, order, records.size());
    return order;
}

}  // namespace citysplat::io
