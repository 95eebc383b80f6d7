#pragma once

#include "datasets/synth/block.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Everything that moves: cars in the lanes, people on the sidewalks. Where each one is at a time is a closed
/// formula, so that the truth can be asked about any moment.
namespace citysplat::synth {

/// Somebody at one moment.
struct Actor {
    Vec3d position;  ///< on the ground, city coordinates
    double cos_yaw, sin_yaw;
    Vec3d centre;  ///< of a sphere around it
    double radius;
    const Geometry* shape;  ///< x forward, y left, z up from `position`
};

struct ActorHit {
    Encounter encounter;
    Look look;
};

/// First encounter with any of the actors.
std::optional<ActorHit> intersect(const std::vector<Actor>& actors, const Ray& ray, double t_max);
/// Nearest surface of an actor within d_max.
std::optional<GeometryNearest> nearest(const std::vector<Actor>& actors, Vec3d p, double d_max);

/// One of a crowd, who keeps its number.
struct Somebody {
    Actor actor;
    bool person;
    std::size_t shape;  ///< number of it in Actors
    /// When the picture of a person who walks changes: at first_picture_s + k · seconds_a_picture. 0: never.
    double first_picture_s, seconds_a_picture;
};

class Drive;
struct ActorStream;

/// All there are, everywhere and always. Immutable.
class Actors {
  public:
    explicit Actors(std::uint64_t seed);
    ~Actors();

    /// All shapes there are: vehicles, then each phase of the step of each person.
    std::size_t shapes() const;
    const Geometry& shape(std::size_t i) const;
    std::string shape_name(std::size_t i) const;
    std::uint8_t shape_label(std::size_t i) const;

  private:
    friend class Crowd;
    std::uint64_t seed_;
    std::vector<Geometry> vehicles_;
    std::vector<std::vector<Geometry>> people_;  ///< by person, by phase of the step
};

/// Who comes within reach of a place during a span of time (seconds since the start of the drive). Asking it
/// for a moment is cheap; the answer does not depend on the span. One thread at a time.
class Crowd {
  public:
    struct Place {
        double x, y, reach_m;
    };
    struct Span {
        double begin_s, end_s;
    };
    Crowd(const Actors& actors, const Place& place, const Span& span);
    ~Crowd();

    /// Everybody within reach of the place at a time of the span, except those who would be in the way of the
    /// survey vehicle at (vehicle_x, vehicle_y). Replaces `out`.
    void at(double time_s, double vehicle_x, double vehicle_y, std::vector<Actor>& out);
    /// How many come during the whole span, and one of them at a time of it, wherever that is and whoever is
    /// in the way.
    std::size_t size() const;
    Somebody somebody(std::size_t i, double time_s);
    static constexpr double kClearance_m = 6.5;
    bool empty() const { return members_.empty(); }  ///< nobody comes during the whole span

  private:
    struct Member;
    static Vec3d place_at(const Member& member, double time_s);
    void gather(const ActorStream& stream, const Span& span);

    const Actors& actors_;
    Place place_;
    std::vector<Member> members_;
};

/// Writes what moves as files that `simulate --scenario` reads, into `folder`: the shapes (*.obj,
/// reflectances.mtl; flats and boxes are exact, round things have 48 sides), the tracks of everybody who
/// comes within 60 m of the drive (tracks.csv), and scenario.toml, which sends the recording scanner among
/// them. Tracks are those of Crowd: who would be in the way of the recording vehicle is not there.
void write_actor_files(const Actors& actors, const Drive& drive, Vec3d origin_m,
                       const std::filesystem::path& folder);

}  // namespace citysplat::synth
