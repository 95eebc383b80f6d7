#pragma once

#include "datasets/synth/survey.hpp"
#include "io/point_file.hpp"

#include <cstdint>
#include <memory>
#include <string>

/// Drives through the synthetic city whose poses are wrong by a known amount.
namespace citysplat::bench {

/// Of poses: none, waves of half a minute and 30 cm, a height that runs away by 70 cm with jitter, neither
/// height nor roll and pitch, a drift that grows, a car that stands and whose position does not.
enum class Errors { none, slow, oxts, flat, ramp, wandering };

/// Beside the cars of the city. A bus keeps beside the car on the left; another one comes slowly from behind
/// on the right. A queue: cars in front, behind and in both lanes on the left, forty of them.
enum class Traffic { usual, bus, buses, queue };

/// What is driven, with what, and how wrong the poses are.
struct Case {
    std::string name;
    std::uint64_t seed = 1;
    double length_m = 3000;          ///< of the whole drive: the car stands for 4 s after 35 % of it
    int beams = 64, columns = 1000;  ///< columns a turn
    double hz = 10;
    double begin_s = 0, end_s = 5;  ///< of the drive
    Errors errors = Errors::slow;
    bool every_second = false;  ///< only even scans
    double poses_hz = 10;
    Traffic traffic = Traffic::usual;
    double stretch = 1;  ///< of all ranges
    double hills_m = 0;  ///< the ground rises and falls by this, in waves of 80 m along both axes
    int drives = 1;      ///< the drive is cut into so many, with clocks and errors of their own
    bool in_memory = true;
};

/// The pose that the navigation system believes in.
Pose believed(const Pose& truth, const Case& c, double time_s, double phase);

/// The street, the drive through it, and what a scanner sees of it.
class Street {
  public:
    explicit Street(const Case& c);
    ~Street();

    Trajectory truth(double begin_s, double end_s, double hz) const;
    /// What was seen in a span of the drive, placed by the true poses. Without `in_memory` points are made
    /// when they are read.
    std::unique_ptr<PointFile> see(double begin_s, double end_s) const;
    /// The same as a pure function, so that files can be opened several times.
    class Seen;

  private:
    Pose true_pose_at(double time_s) const;
    void refine(PointBatch& block, double begin_s, double end_s) const;

    struct Scenes;
    Case case_;
    synth::Drive drive_;
    synth::Actors actors_;
    std::unique_ptr<synth::Survey> survey_;
    std::unique_ptr<Scenes> scenes_;
};

}  // namespace citysplat::bench
