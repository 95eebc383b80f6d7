#include "sim/sensor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace citysplat::sim {

namespace {

template <class... Ts>
struct Overloaded : Ts... {
    using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

/// Calls f(column, row) for a grid in blocks of 8 × 2, each column by column.
template <class F>
void for_each_in_blocks(std::uint32_t columns, std::uint32_t rows, F f) {
    for (std::uint32_t column0 = 0; column0 < columns; column0 += 8)
        for (std::uint32_t row0 = 0; row0 < rows; row0 += 2)
            for (std::uint32_t column = column0; column < std::min(column0 + 8, columns); ++column)
                for (std::uint32_t row = row0; row < std::min(row0 + 2, rows); ++row) f(column, row);
}

void fire_spinning(const SpinningHead& head, std::vector<Firing>& out) {
    // Beams in firing order need not be neighbours in elevation.
    std::vector<std::uint32_t> by_elevation(head.beams.size());
    std::iota(by_elevation.begin(), by_elevation.end(), 0u);
    std::stable_sort(by_elevation.begin(), by_elevation.end(), [&](std::uint32_t a, std::uint32_t b) {
        return head.beams[a].elevation_rad < head.beams[b].elevation_rad;
    });
    for_each_in_blocks(head.pattern.columns, head.pattern.beams,
                       [&](std::uint32_t column, std::uint32_t row) {
                           const std::uint32_t beam = by_elevation[row];
                           out.push_back(spinning_firing(head.pattern, head.beams[beam], beam, column));
                       });
}

void fire_table(const RayTable& table, std::uint64_t scan, double scan_s, std::vector<Firing>& out) {
    const double begin = static_cast<double>(scan) * scan_s;
    const double laps = std::floor(begin / table.period_s);
    double at = begin - laps * table.period_s;
    const std::size_t n = table.firings.size();
    std::size_t i = static_cast<std::size_t>(
        std::lower_bound(table.firings.begin(), table.firings.end(), at,
                         [](const Firing& f, double t) { return static_cast<double>(f.time_s) < t; }) -
        table.firings.begin());
    double lap_begin = -at;
    for (std::uint32_t ray = 0;; ++ray, ++i) {
        if (i == n) i = 0, lap_begin += table.period_s;
        Firing f = table.firings[i];
        const double time_s = lap_begin + static_cast<double>(f.time_s);
        if (time_s >= scan_s) break;
        f.time_s = static_cast<float>(time_s);
        f.ray = ray;
        out.push_back(f);
    }
}

}  // namespace

void fire(const Sensor& sensor, std::uint64_t scan, std::vector<Firing>& out) {
    out.clear();
    out.reserve(sensor.rays_per_scan());
    std::visit(Overloaded{[&](const SpinningHead& head) { fire_spinning(head, out); },
                          [&](const RosettePattern& p) {
                              for (std::uint32_t i = 0; i < p.rays; ++i)
                                  out.push_back(rosette_firing(p, scan, i));
                          },
                          [&](const NoddingPattern& p) {
                              for (std::uint32_t i = 0; i < p.rays; ++i)
                                  out.push_back(nodding_firing(p, scan, i));
                          },
                          [&](const PinholePattern& p) {
                              for_each_in_blocks(p.columns, p.rows,
                                                 [&](std::uint32_t column, std::uint32_t row) {
                                                     out.push_back(pinhole_firing(p, column, row));
                                                 });
                          },
                          [&](const RayTable& table) { fire_table(table, scan, 1 / sensor.scan_hz, out); }},
               sensor.rays);
}

FiringPlan plan_of(std::span<const Firing> firings) {
    FiringPlan plan;
    plan.count = static_cast<std::uint32_t>(firings.size());
    plan.list = firings.data();
    return plan;
}

FiringPlan plan_firings(const Sensor& sensor, std::uint64_t scan, std::vector<Firing>& list) {
    FiringPlan plan;
    plan.scan = scan;
    if (const auto* rosette = std::get_if<RosettePattern>(&sensor.rays)) {
        plan.kind = FiringPlan::Kind::rosette;
        plan.count = rosette->rays;
        plan.rosette = *rosette;
    } else if (const auto* nodding = std::get_if<NoddingPattern>(&sensor.rays)) {
        plan.kind = FiringPlan::Kind::nodding;
        plan.count = nodding->rays;
        plan.nodding = *nodding;
    } else {
        if (list.empty() || !sensor.repeats()) fire(sensor, scan, list);
        plan = plan_of(list);
    }
    return plan;
}

std::uint32_t Sensor::rays_per_scan() const {
    return std::visit(
        Overloaded{[](const SpinningHead& head) { return head.pattern.beams * head.pattern.columns; },
                   [](const RosettePattern& p) { return p.rays; },
                   [](const NoddingPattern& p) { return p.rays; },
                   [](const PinholePattern& p) { return p.columns * p.rows; },
                   [this](const RayTable& table) {
                       // Rounded up: a scan may begin anywhere in the table.
                       return static_cast<std::uint32_t>(static_cast<double>(table.firings.size()) /
                                                         (table.period_s * scan_hz)) +
                              2;
                   }},
        rays);
}

bool Sensor::repeats() const {
    return std::holds_alternative<SpinningHead>(rays) || std::holds_alternative<PinholePattern>(rays);
}

}  // namespace citysplat::sim
