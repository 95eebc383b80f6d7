#include "sim/sensor/sensor.hpp"

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

/// Calls f(column, row) for a grid in an order that tracers like: blocks of 64 × 8, and in them runs of 16
/// columns of one row. Flat runs, because rows that are neighbours meet the ground far from each other.
template <class F>
void for_each_in_blocks(std::uint32_t columns, std::uint32_t rows, F f) {
    constexpr std::uint32_t kColumns = 64, kRows = 8, kRun = 16;
    for (std::uint32_t column0 = 0; column0 < columns; column0 += kColumns)
        for (std::uint32_t row0 = 0; row0 < rows; row0 += kRows)
            for (std::uint32_t run = column0; run < std::min(column0 + kColumns, columns); run += kRun)
                for (std::uint32_t row = row0; row < std::min(row0 + kRows, rows); ++row)
                    for (std::uint32_t column = run; column < std::min(run + kRun, columns); ++column)
                        f(column, row);
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

}  // namespace

std::span<const Firing> RayTable::scan(std::uint64_t index) const {
    const auto i = static_cast<std::size_t>(index % scan_ends.size());
    const std::size_t begin = i == 0 ? 0 : scan_ends[i - 1];
    return std::span(firings).subspan(begin, scan_ends[i] - begin);
}

std::size_t RayTable::most_rays() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < scan_ends.size(); ++i) most = std::max(most, scan(i).size());
    return most;
}

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
                          [&](const RayTable& table) {
                              const auto firings = table.scan(scan);
                              out.assign(firings.begin(), firings.end());
                          }},
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
                   [](const RayTable& table) { return static_cast<std::uint32_t>(table.most_rays()); }},
        rays);
}

bool Sensor::repeats() const {
    const auto* table = std::get_if<RayTable>(&rays);
    return std::holds_alternative<SpinningHead>(rays) || std::holds_alternative<PinholePattern>(rays) ||
           (table && table->scan_ends.size() == 1);
}

}  // namespace citysplat::sim
