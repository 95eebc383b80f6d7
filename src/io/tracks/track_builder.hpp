#pragma once

#include "io/tracks/track_file.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace citysplat::io {

/// One box of an object at one moment, as a reader found it.
struct TrackBox {
    std::string_view id;          ///< the same for all boxes of an object
    std::string_view name;        ///< for people; empty: the id
    std::string_view class_name;  ///< in the words of the source
    std::string_view object;      ///< what it looks like from now on; may be empty
    ObjectSize size{};            ///< zeros: not known
    StampedPose stamped{};        ///< middle of the bottom face, x forward, in the world
    std::uint64_t record = 0;     ///< line, frame or row, for messages
    bool always = false;          ///< stands there for ever: its time means nothing
};

/// Makes tracks of boxes that come in any order.
class TrackBuilder {
  public:
    /// `record_kind` names what a record is: "line", "frame", …
    TrackBuilder(std::string file, const TrackOptions& options) : file_(std::move(file)), options_(options) {}

    void set_record_kind(std::string kind) { kind_ = std::move(kind); }
    /// An object that misses a box ends there and comes back as another piece when the gap is longer than
    /// both. Default: 1 s and two and a half usual steps.
    void set_gap(double least_s, double steps) { gap_s_ = least_s, gap_steps_ = steps; }
    void note(const std::string& text);

    /// Throws InputError naming file and record when the box is not finite, not on Earth or of impossible
    /// size.
    void add(const TrackBox& box);
    /// Throws InputError when an object has two boxes at one time, or when there is no box at all.
    TrackFile finish() &&;

    std::string where(std::uint64_t record) const {
        return file_ + ": " + kind_ + " " + std::to_string(record);
    }
    const std::string& file() const { return file_; }

  private:
    struct Entry {
        StampedPose stamped;
        std::uint64_t record;
        std::uint32_t look;  ///< number of the object that it looks like
    };
    struct Object {
        std::string name, class_name;
        ObjectSize size_sum{};
        std::uint64_t sizes = 0;
        bool always = false;
        std::vector<Entry> entries;
    };

    bool is_wanted(const StampedPose& stamped) const;
    void sort(Object& object) const;
    double usual_step_s() const;
    void cut(const Object& object, double step_s, std::vector<Track>& tracks) const;
    std::uint32_t look_of(std::string_view object);

    std::string file_, kind_ = "record";
    const TrackOptions& options_;
    double gap_s_ = 1, gap_steps_ = 2.5;
    std::vector<Object> objects_;
    std::unordered_map<std::string, std::size_t> by_id_;
    std::unordered_map<std::string, std::uint32_t> looks_;
    std::vector<std::string> look_names_;
    std::vector<std::string> notes_;
    std::uint64_t added_ = 0;
};

}  // namespace citysplat::io
