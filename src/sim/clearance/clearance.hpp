#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"
#include "sim/clearance/box_tree.hpp"
#include "sim/clearance/convex.hpp"
#include "sim/traffic/traffic.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

/// How far a body is from the city and from everything that moves.
namespace citysplat::sim {

/// What must not touch anything: a box, or the surface of a mesh, in the body's frame. A mesh is a surface:
/// something that is wholly inside of it does not touch it.
class ClearanceBody {
  public:
    explicit ClearanceBody(const Box3d& box) : box_(box) {}
    /// `body_from_shape` as Actor::object_from_shape has it.
    ClearanceBody(const TriangleMesh& mesh, const Pose& body_from_shape);

    const Box3d& box() const { return box_; }
    bool is_box() const { return triangles_.empty(); }
    std::span<const convex::Triangle> triangles() const { return triangles_; }
    const BoxTree& tree() const { return tree_; }

  private:
    Box3d box_;
    std::vector<convex::Triangle> triangles_;
    BoxTree tree_;
};

/// The nearest thing.
struct Clearance {
    double distance_m;  ///< the limit when nothing is nearer; 0: it touches
    bool touches = false;
    bool found = false;                    ///< something is nearer than the limit
    std::optional<std::uint32_t> actor{};  ///< nothing: the city
    Vec3d place{0, 0, 0};                  ///< of the disc or triangle, in the world
    std::uint16_t label = 0;               ///< of the disc
};

struct ClearanceOptions {
    double limit_m = 1;  ///< what is farther does not matter
    std::uint64_t budget_bytes = std::uint64_t{512}
                                 << 20;  ///< of the tiles in memory; never changes a result
};

/// Asks for clearances. Keeps what it asked for last in memory. One thread at a time.
///
/// Discs and boxes are held against each other exactly: they touch when the polygon that the box cuts out of
/// the disc's plane comes within the disc's radius of its centre. Distances are at most 0.1 mm too large.
class ClearanceProbe {
  public:
    /// Both must outlive the probe; traffic may be nullptr.
    ClearanceProbe(const TileSource& city, const Traffic* traffic, const ClearanceOptions& options);
    ~ClearanceProbe();

    /// From now on what is farther does not matter.
    void set_limit(double limit_m) { options_.limit_m = limit_m; }

    /// Of a body at a pose and time. Actors of `vehicle` are left out: a body is not in its own way.
    Clearance at(const ClearanceBody& body, const Pose& world_from_body, double time_s,
                 std::uint32_t vehicle = kNoVehicle);

  private:
    struct Shapes;
    struct Query;
    const Shapes& tile(std::uint32_t number);
    const Shapes& shape(std::uint32_t number);
    void search(const Shapes& shapes, const Pose& body_from_shapes, std::optional<std::uint32_t> actor,
                Query& query) const;

    const TileSource& city_;
    const Traffic* traffic_;
    ClearanceOptions options_;
    std::unordered_map<std::uint32_t, std::unique_ptr<Shapes>> tiles_;
    std::list<std::uint32_t> recent_;  ///< tiles, the last used first
    std::uint64_t bytes_ = 0;
    std::vector<std::unique_ptr<Shapes>> shapes_;
};

/// Clearance along a way.
struct ClearanceReport {
    std::uint64_t poses = 0, touching = 0;
    Clearance nearest{};
    double nearest_s = 0;                                ///< when
    std::vector<std::pair<double, double>> touched_s{};  ///< from, to
};
struct ClearanceWay {
    const Trajectory& trajectory;
    double from_s, to_s, step_s;
    std::uint32_t vehicle = kNoVehicle;
};
ClearanceReport clearance_along(ClearanceProbe& probe, const ClearanceBody& body, const ClearanceWay& way,
                                const CancelToken& cancel);

}  // namespace citysplat::sim
