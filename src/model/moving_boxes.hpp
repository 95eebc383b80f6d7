#pragma once

#include "model/object_box.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace citysplat {

/// The boxes of tracked things that move, as a rule for points: what is in one of them when it is measured is
/// not part of a city. Immutable: safe to use from several threads.
class MovingBoxes {
  public:
    /// Boxes err by some centimetres and by what their object moves in some milliseconds; they are grown by
    /// this to all sides and upwards.
    static constexpr double kMargin_m = 0.25;
    /// What lies lower than this in a box is road, kerb or the foot of a tyre, and stays.
    static constexpr double kGround_m = 0.15;
    /// A track whose poses are nowhere farther apart than this stands: boxes drawn around a parked car
    /// jitter.
    static constexpr double kStands_m = 1.0;

    /// Keeps the tracks that move and have a size.
    explicit MovingBoxes(std::span<const Track> tracks);

    std::size_t size() const { return tracks_.size(); }

    /// The boxes that exist at some time, near the places that they are at then.
    class Near {
      public:
        bool contain(Vec3d world, double time_s) const;

      private:
        friend class MovingBoxes;
        struct Candidate {
            const Track* track;
            Box3d reach;
        };
        std::vector<Candidate> candidates_;
    };
    Near during(double begin_s, double end_s) const;

  private:
    std::vector<Track> tracks_;
};

}  // namespace citysplat
