#pragma once

#include "datasets/synth/actors.hpp"
#include "datasets/synth/city_scene.hpp"
#include "datasets/synth/drive.hpp"
#include "model/point.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::synth {

/// A rotating scanner: a fan of beams turning about its own z axis, all beams of a column fired at one
/// moment.
struct Scanner {
    std::string name;
    std::vector<double> elevations_rad;
    double pitch_rad;  ///< its z axis leans back by this
    double revolutions_per_s;
    double max_range_m;
};
/// 32 beams from −30.67° to +10.67° (the pattern of a Velodyne HDL-32E), leaning back 45° as in
/// Paris-CARLA-3D.
Scanner scanner_32(double max_range_m);
/// One beam in a plane across the street.
Scanner profile_scanner(double max_range_m);

/// As a sensor file of the simulation: its rays from the recorded trajectory are those of the survey, turn by
/// turn. The simulation leans it back (--mount-angles 0,-45,0).
std::string sensor_toml(const Scanner& scanner, double columns_per_s, double noise_m);

struct SurveyParams {
    double noise_m = 0.012;    ///< standard deviation of a range
    bool mixed_pixels = true;  ///< ranges between two surfaces where the beam meets an edge
    bool outliers = true;      ///< a few returns out of thin air
    /// Firings, of all beams each. A whole number of them makes a turn: every turn has the same azimuths.
    double columns_per_s = 21700;
};

/// The survey of one scanner on one drive: column c is fired (c + ½) / columns_per_s seconds after the start.
/// Chunks are independent of each other; a chunk is always the same columns. Drive and actors must outlive
/// it.
class Survey {
  public:
    static constexpr std::int64_t kRaysPerChunk = 32768;

    Survey(const Drive& drive, const Actors& actors, Scanner scanner, SurveyParams params,
           Vec3d world_origin);

    const Scanner& scanner() const { return scanner_; }
    std::int64_t chunk_count() const;
    /// The cells that the rays of a chunk may meet, and the cell around which they start.
    struct Surroundings {
        Cell centre;
        std::vector<Cell> cells;
    };
    Surroundings surroundings(std::int64_t chunk) const;
    /// Fires the columns of a chunk; `every` > 1 takes only each every-th of them. Replaces `out` with the
    /// points, in world coordinates and firing order. Returns the number of rays.
    std::int64_t fire(std::int64_t chunk, const CityScene& scene, PointBatch& out,
                      std::int64_t every = 1) const;

    double column_time_s(std::int64_t column) const {
        return (static_cast<double>(column) + 0.5) / params_.columns_per_s;
    }

  private:
    class Sweep;
    std::int64_t columns_per_chunk() const;

    const Drive& drive_;
    const Actors& actors_;
    Scanner scanner_;
    SurveyParams params_;
    Vec3d world_origin_;
    std::int64_t columns_;
    std::vector<exact::SinCos> elevations_;
    std::uint64_t key_;
};

}  // namespace citysplat::synth
