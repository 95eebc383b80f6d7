#pragma once

#include "model/assembled/stored_things.hpp"
#include "sim/traffic/motion.hpp"
#include "sim/traffic/scan_parts.hpp"
#include "trace/tracer.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::sim {

/// Recorded frames of what moved, as a scenario plays them. Each frame is there for rays of its interval,
/// where it was recorded; nothing of it is there before or after.
struct FramePlay {
    FrameSourcePtr source;
    double time_offset_s = 0;  ///< added to the times of the frames
    double repeat_s = 0;       ///< they begin again after this time, for ever and before; 0: played once
    std::uint16_t rest = 1;    ///< instance of returns on splats that belong to no object
    std::map<std::uint32_t, std::uint16_t> instances{};  ///< by FrameEntry::objects

    /// Throws ConfigError when frames would be there twice at a time because they repeat too soon.
    void check() const;
    /// From the first frame to the end of the last one, on the clock of the frames. Requires frames.
    std::pair<double, double> span_s() const;
};

/// Those frames of the plays that scans need, ready for a tracer. Which of them are in memory changes no
/// return: numbers of parts come from the places of frames in their sources.
///
/// Protocol: make_ready() for the sweeps of a leg, then add_to() for any of them, from any thread.
class ReadyFrames {
  public:
    /// Plays and tracer must outlive it. Throws InputError when there are more frames than parts can be
    /// numbered.
    ReadyFrames(std::span<const FramePlay> plays, const trace::Tracer& tracer);

    /// Memory of all frames that these sweeps need.
    std::uint64_t bytes_for(std::span<const Sweep> sweeps) const;
    /// Memory of all frames.
    std::uint64_t bytes_of_all() const;

    /// Lets go of all frames but those that the sweeps need, and loads these. Throws as FrameSource::load()
    /// and Tracer::load() do.
    void make_ready(std::span<const Sweep> sweeps);
    /// Adds the parts that rays can meet during a sweep. Requires that it is one of those made ready.
    void add_to(ScanParts& parts, const Sweep& sweep, const ScanReach& reach) const;

    std::uint64_t frames() const { return frames_; }         ///< of all plays
    std::uint64_t frames_loaded() const { return loaded_; }  ///< so far, again and again
    std::uint64_t resident_frames() const { return ready_.size(); }

  private:
    /// A frame at one of the times that it is played.
    struct Showing {
        std::uint32_t play, frame;
        double shift_s;  ///< from the clock of the frames to that of the sweep
    };
    using Place = std::pair<std::uint32_t, std::uint32_t>;  ///< play, frame
    /// The splats of one object, or of none, in a frame.
    struct Piece {
        trace::TracerTilePtr shape;
        trace::PartFacts facts;
    };
    struct Frame {
        trace::PoseKey at;
        std::vector<Piece> pieces;
    };
    std::vector<Showing> showings(const Sweep& sweep) const;
    std::vector<Place> needed(std::span<const Sweep> sweeps) const;
    std::uint64_t bytes(const Place& place) const;
    Frame loaded(const Place& place) const;

    std::span<const FramePlay> plays_;
    const trace::Tracer& tracer_;
    struct PlaySpan {
        std::uint32_t first_number;  ///< of its frames, among those of all plays
        double begin_s, end_s;       ///< on the clock of the frames
    };
    std::vector<PlaySpan> spans_;  ///< of the plays
    std::uint64_t frames_ = 0, loaded_ = 0;
    std::map<Place, Frame> ready_;
};

}  // namespace citysplat::sim
