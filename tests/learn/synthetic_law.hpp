#pragma once

#include "sim/learn/learned_pass.hpp"
#include "sim/learn/learning_set.hpp"
#include "sim/learn/probit.hpp"
#include "sim/test_drive.hpp"

#include <cmath>
#include <string>
#include <vector>

/// A street, a sensor, and a law by which its returns get lost: what a model should find out, known exactly.
namespace citysplat::test {

inline std::string learning_sensor_text(unsigned beams, unsigned columns) {
    return "name = \"learning\"\nkind = \"spinning\"\n[spin]\nrate_hz = 10\ncolumns_per_turn = " +
           std::to_string(columns) + "\n[beams]\ncount = " + std::to_string(beams) +
           "\nfirst_deg = 5\nlast_deg = -25\n[range]\nmin_m = 0.5\nmax_m = 60\n";
}
inline sim::Sensor learning_sensor(unsigned beams = 32, unsigned columns = 720) {
    return sim::Sensor::parse(learning_sensor_text(beams, columns), "learning.toml");
}

/// The street of memory_city.hpp, in patches of 2 m that are differently bright; some are black.
inline std::vector<WorldDisc> patchy_street(double length_m) {
    const Place at;
    std::vector<WorldDisc> discs = street(at.east, at.north, length_m, 0.3);
    for (WorldDisc& d : discs) {
        const auto cell = [](double v) {
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(v / 2)));
        };
        const std::uint64_t key =
            rng::key(rng::key(rng::key(5, cell(d.centre.x)), cell(d.centre.y)), cell(d.centre.z));
        const double bright = rng::uniform(key, 0);
        d.intensity = bright < 0.1 ? 0 : static_cast<std::uint16_t>(65535 * bright * bright);
    }
    return discs;
}

/// Scans of the street without noise, each with the pose of its beginning.
inline std::vector<sim::Scan> clean_scans(const sim::Sensor& sensor, double length_m, double seconds) {
    const MemoryCity city(patchy_street(length_m + 20), 32);
    sim::SensorRun run{sensor, {}, 1};
    run.noise = false;
    return drive(city, run, with_budget(1 << 30), straight_drive(length_m, seconds)).scans;
}

/// The law: far, dark and grazing returns get lost, in clumps, and the own car stands behind the sensor.
struct SyntheticLaw {
    sim::learn::NoiseShares shares{0.3, 0.3};
    std::uint64_t seed = 77;

    bool behind_car(const sim::learn::ScanGrid& grid, std::uint32_t beam, std::uint32_t column) const {
        const std::uint32_t cell = grid.mask_cell(beam, column);
        return grid.elevation_deg(beam) < -12 && cell >= 150 && cell < 210;
    }
    /// A return is lost with probability Φ(score).
    double score(const sim::Return& r) const {
        const double range = static_cast<double>(r.range_m), cosine = static_cast<double>(r.cosine),
                     root = std::sqrt(r.intensity / 65535.0);
        return -2.0 + 0.04 * (range - 10) + 1.5 * (1 - cosine) * (1 - cosine) - 1.5 * (root - 0.4);
    }
    /// What the sensor sees of the intensity of a surface.
    double intensity(const sim::Return& r) const {
        const double gain = r.beam % 2 == 0 ? 0.8 : 1.1;
        return std::clamp(gain * r.intensity / 65535.0 - 0.1 * (1 - static_cast<double>(r.cosine)), 0.0, 1.0);
    }
    sim::learn::LearningScan observe(const sim::Scan& scan, const sim::learn::ScanGrid& grid) const {
        using namespace sim::learn;
        LearningScan result{scan.time_s, scan.returns, std::vector<Observation>(scan.returns.size())};
        const NoiseKeys keys{sim::scan_key(seed, 0, scan.index), place_key(seed)};
        const NoiseMix mix{std::sqrt(shares.scan), std::sqrt(shares.place),
                           std::sqrt(1 - shares.scan - shares.place)};
        for (std::uint32_t ray = 0; ray < scan.returns.size(); ++ray) {
            const sim::Return& r = scan.returns[ray];
            const bool lost = r.status != sim::RayStatus::hit ||
                              behind_car(grid, r.beam, ray / grid.beams()) ||
                              mixed(mix, draws_of(keys, r, ray)) < score(r);
            result.observed[ray] =
                lost ? Observation{Answer::empty}
                     : Observation{Answer::returned, r.range_m, static_cast<float>(intensity(r))};
        }
        return result;
    }
};

}  // namespace citysplat::test
