#include "sim/recorded/lesson.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

namespace citysplat::sim {

namespace {

/// A place without ray takes over from places at most this many columns away.
constexpr std::uint32_t kMostBorrowed = 3;
/// Real heads differ from their data sheets by less than this.
constexpr double kFarFromBeam_deg = 1.0;

/// Fills places that no ray was recorded in from the nearest place of the same beam.
void borrow_from_neighbours(const learn::ScanGrid& grid, const std::vector<bool>& known,
                            std::vector<Return>& image) {
    const std::uint32_t columns = grid.columns(), beams = grid.beams();
    for (std::uint32_t ray = 0; ray < grid.rays(); ++ray) {
        if (known[ray]) continue;
        const std::uint32_t column = ray / beams, beam = ray % beams;
        for (std::uint32_t away = 1; away <= kMostBorrowed && away < columns; ++away) {
            const std::uint32_t before = (column + columns - away) % columns * beams + beam,
                                after = (column + away) % columns * beams + beam;
            if (!known[before] && !known[after]) continue;
            image[ray] = image[known[before] ? before : after];
            break;
        }
    }
}

}  // namespace

BeamTable beams_for(const Sensor& sensor, const BeamTable& found) {
    const learn::ScanGrid grid(sensor);
    const std::uint32_t beams = grid.beams();
    const std::size_t few = std::max<std::size_t>(2, beams / 8);
    if (!found.ring_by_ring || found.size() <= beams || found.size() > beams + few) return found;
    BeamTable table{{}, {}, true};
    for (std::uint32_t row = 0; row < beams; ++row)
        table.elevation_rad.push_back(grid.elevation_deg(grid.beam_of_row(row)) * exact::kRadPerDegree);
    std::sort(table.elevation_rad.begin(), table.elevation_rad.end(), std::greater<>());
    return table;
}

std::vector<std::uint32_t> match_beams(const Sensor& sensor, const BeamTable& found) {
    const learn::ScanGrid grid(sensor);
    const std::uint32_t beams = grid.beams();
    if (found.size() == 0)
        throw ConfigError("the scans show no beams, so they cannot teach anything about a sensor");
    if (found.size() > beams)
        throw ConfigError("the scans show " + std::to_string(found.size()) + " beams, but sensor \"" +
                          sensor.id + "\" has " + std::to_string(beams) +
                          "; name the right one with --sensor");
    std::vector<std::uint32_t> beam_of;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found.size() == beams) {
            beam_of.push_back(grid.beam_of_row(beams - 1 - static_cast<std::uint32_t>(i)));
            continue;
        }
        const double elevation_deg = found.elevation_rad[i] * exact::kDegreesPerRad;
        std::uint32_t nearest = 0;
        const auto distance = [&](std::uint32_t beam) {
            return std::fabs(grid.elevation_deg(beam) - elevation_deg);
        };
        for (std::uint32_t beam = 1; beam < beams; ++beam)
            if (distance(beam) < distance(nearest)) nearest = beam;
        if (distance(nearest) > kFarFromBeam_deg)
            throw ConfigError("the scans have a beam at " +
                              format_number(std::round(100 * elevation_deg) / 100) + "°, where sensor \"" +
                              sensor.id +
                              "\" has none; name the right one with --sensor, or make it with calibrate");
        beam_of.push_back(nearest);
    }
    return beam_of;
}

LessonMaker::LessonMaker(const Sensor& sensor, const BeamTable& found)
    : grid_(sensor),
      min_range_m_(static_cast<float>(sensor.min_range_m)),
      max_range_m_(static_cast<float>(sensor.max_range_m)),
      beam_of_(match_beams(sensor, found)) {}

std::vector<std::uint32_t> LessonMaker::places_of(const RecordedScan& scan) const {
    std::vector<std::uint32_t> places(scan.rays.size(), kNowhere);
    std::vector<bool> taken(grid_.rays());
    const std::uint32_t columns = grid_.columns();
    const auto take = [&](std::size_t i, std::uint32_t column) {
        const std::uint32_t place = column * grid_.beams() + beam_of_[scan.rays[i].beam];
        if (taken[place]) return false;
        taken[place] = true;
        places[i] = place;
        return true;
    };
    std::vector<std::pair<std::size_t, std::uint32_t>> late;  // ray, column: taken by another
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        const RecordedRay& ray = scan.rays[i];
        if (ray.beam >= beam_of_.size()) continue;
        const auto column = grid_.column_at(beam_of_[ray.beam], ray.azimuth_rad);
        if (column && !take(i, *column)) late.emplace_back(i, *column);
    }
    for (const auto& [i, column] : late)
        for (const bool next : {true, false}) {
            const bool at_end = column == (next ? columns - 1 : 0);
            if (at_end && !grid_.wraps()) continue;
            if (take(i, (column + (next ? 1 : columns - 1)) % columns)) break;
        }
    return places;
}

learn::LearningScan LessonMaker::lesson(const RecordedScan& scan, std::span<const Return> simulated) const {
    learn::LearningScan lesson;
    lesson.time_s = scan.rays.empty() ? 0 : scan.rays[0].time_s;
    lesson.simulated.resize(grid_.rays());
    lesson.observed.resize(grid_.rays());
    std::vector<bool> known(grid_.rays());
    const std::vector<std::uint32_t> places = places_of(scan);
    for (std::size_t i = 0; i < scan.rays.size(); ++i) {
        const RecordedRay& real = scan.rays[i];
        const std::uint32_t place = places[i];
        if (place == kNowhere) continue;
        known[place] = true;
        Return& r = lesson.simulated[place];
        r = simulated[i];
        r.beam = static_cast<std::uint16_t>(place % grid_.beams());
        if (!reaches(r.range_m)) r.status = RayStatus::none;
        lesson.observed[place] = {
            real.met_city() ? learn::Answer::returned : learn::Answer::empty,
            static_cast<float>(real.range_m),
            scan.has_intensity ? static_cast<float>(real.intensity) * learn::kIntensityScale : -1.0f};
    }
    borrow_from_neighbours(grid_, known, lesson.simulated);
    return lesson;
}

}  // namespace citysplat::sim
