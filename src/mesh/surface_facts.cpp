#include "mesh/surface_facts.hpp"

#include "core/math/math_hd.hpp"
#include "model/splat_hd.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace citysplat::mesh {

namespace {

/// Sums over points; all whole numbers.
class FactSums {
  public:
    explicit FactSums(Vec3d normal) : normal_(normal) {}

    void add(std::span<const VoxelPoint> points) {
        for (const VoxelPoint& p : points) add(p);
    }
    bool empty() const { return count_ == 0; }

    void put(MeshVertex& vertex) const {
        vertex.intensity = static_cast<std::uint16_t>(intensity_ / count_);
        vertex.label = most_frequent();
        vertex.range = vertex.incidence = kUnknownByte;
        if (seen_ == 0) return;
        vertex.range = static_cast<std::uint8_t>(std::min<std::int64_t>(254, range_ / seen_));
        const double square = sums_.sum_of_sights2(normal_) / (kSightUnits * kSightUnits);
        const double cosine2 = std::clamp(square / static_cast<double>(seen_), 0.0, 1.0);
        const double angle = exact::atan2(std::sqrt(1 - cosine2), std::sqrt(cosine2));
        vertex.incidence =
            static_cast<std::uint8_t>(std::min(254.0, std::floor(angle / (exact::kPi / 2) * 254 + 0.5)));
    }

  private:
    void add(const VoxelPoint& p) {
        ++count_;
        intensity_ += p.intensity;
        count_label(p.label);
        if (!p.has_sensor()) return;
        ++seen_;
        sums_.add(0, 0, 0, p.sight());
        range_ += p.range;
    }

    void count_label(std::uint16_t label) {
        if (labels_.empty() || labels_[last_].first != label) {
            const auto known = std::find_if(labels_.begin(), labels_.end(),
                                            [label](const auto& entry) { return entry.first == label; });
            last_ = static_cast<std::size_t>(known - labels_.begin());
            if (known == labels_.end()) labels_.emplace_back(label, 0);
        }
        ++labels_[last_].second;
    }

    std::uint16_t most_frequent() const {
        return std::min_element(labels_.begin(), labels_.end(),
                                [](const auto& a, const auto& b) {
                                    return a.second != b.second ? a.second > b.second : a.first < b.first;
                                })
            ->first;
    }

    Vec3d normal_;
    std::int64_t count_ = 0, intensity_ = 0, seen_ = 0, range_ = 0;
    VoxelSums sums_;
    std::vector<std::pair<std::uint16_t, std::int64_t>> labels_;
    std::size_t last_ = 0;  ///< of labels_: that of the point before
};

}  // namespace

void describe_vertex(const VoxelPoints& points, const BoxSums& sums, const SurfacePlace& place,
                     MeshVertex& vertex) {
    const GridEdge& edge = place.edge;
    FactSums facts(place.normal);
    const auto add = [&](std::size_t voxel) { facts.add(points.points(voxel)); };
    const Voxel& c = edge.corner;
    const auto step = [&edge](int axis) { return edge.axis == axis ? 1 : 0; };
    // Along its axis the edge is one voxel long, along the others it has a voxel on both sides.
    sums.box({c.x - 1 + step(0), c.y - 1 + step(1), c.z - 1 + step(2)}, {c.x + 1, c.y + 1, c.z + 1}, add);
    Voxel nearer = c;
    if (place.nearer_to_high) nearer = {c.x + step(0), c.y + step(1), c.z + step(2)};
    for (int level = 1; facts.empty() && level <= sums.most_level(); ++level) sums.visit(nearer, level, add);
    if (!facts.empty()) facts.put(vertex);
}

}  // namespace citysplat::mesh
