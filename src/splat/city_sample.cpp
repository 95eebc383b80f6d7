#include "splat/city_sample.hpp"

#include "core/math/rng_hd.hpp"
#include "splat/city_thickness.hpp"
#include "splat/generation/generation.hpp"
#include "tiling/sector.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace citysplat::splat {
namespace {

using tiling::RegionReader;
using tiling::Sector;

constexpr std::uint64_t kMostPlaces = 2000;
/// Points that are asked in the whole city, and in one place.
constexpr std::uint64_t kSampledPoints = 1 << 17, kFewestPoints = 64, kMostPoints = 4096;
/// Points that are read with their surroundings, all places together.
constexpr std::uint64_t kPointsReadAround = 2'000'000;
/// A place is a square of so many cells: whole pieces of an archive, each read once.
constexpr int kCellsPerPlace = 2;
constexpr int kPlacesPerSide = tiling::kCellsPerSide / kCellsPerPlace;
constexpr std::int64_t kPlaceSteps = kCellsPerPlace * tiling::kCellSteps;

/// Bits of x and y in turn: nearby places have nearby numbers.
std::uint64_t along_curve(std::uint32_t x, std::uint32_t y) {
    const auto spread = [](std::uint64_t v) {
        v = (v | v << 16) & 0x0000ffff0000ffff;
        v = (v | v << 8) & 0x00ff00ff00ff00ff;
        v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
        v = (v | v << 2) & 0x3333333333333333;
        return (v | v << 1) & 0x5555555555555555;
    };
    return spread(x) << 1 | spread(y);
}

std::uint64_t along_curve(const Sector& sector) {
    constexpr std::uint32_t kSign = 1u << 31;
    return along_curve(static_cast<std::uint32_t>(sector.x) ^ kSign,
                       static_cast<std::uint32_t>(sector.y) ^ kSign);
}

/// The places of a sector that hold points, along the curve.
std::vector<LatticeBox> places_of(const RegionReader& reader, const Sector& sector) {
    std::vector<std::uint64_t> order;
    for (const int cell : reader.occupied_cells(sector)) {
        const int x = cell / tiling::kCellsPerSide / kCellsPerPlace;
        const int y = cell % tiling::kCellsPerSide / kCellsPerPlace;
        order.push_back(along_curve(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)) << 16 |
                        static_cast<std::uint64_t>(x * kPlacesPerSide + y));
    }
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    std::vector<LatticeBox> places;
    for (const std::uint64_t place : order) {
        const auto number = static_cast<std::int64_t>(place & 0xffff);
        const std::int64_t x = sector.origin_x() + number / kPlacesPerSide * kPlaceSteps;
        const std::int64_t y = sector.origin_y() + number % kPlacesPerSide * kPlaceSteps;
        places.push_back({x, y, x + kPlaceSteps, y + kPlaceSteps});
    }
    return places;
}

/// The points of a region that splats are made from, as in PointCloud, in bands of half a metre along y and
/// in canonical order within a band.
class CandidatePoints {
  public:
    struct Point {
        std::int32_t x, y, z;
        std::uint32_t slot;  ///< this and the others as in TilePoint
        std::uint16_t label;
        std::int16_t sensor_dx, sensor_dy, sensor_dz;
        auto place() const { return std::tie(x, y, z); }
    };
    struct Near {
        std::uint32_t distance2, point;
        friend auto operator<=>(const Near&, const Near&) = default;
    };

    /// Empties region.points on the way: no more than two copies of a crowded place are in memory.
    CandidatePoints(tiling::Region& region, const ClassTable& classes)
        : frame_(region.frame),
          y_min_(static_cast<std::int32_t>(region.covered.min_y - region.frame.origin().y)),
          begin_(static_cast<std::size_t>((region.covered.max_y - region.covered.min_y) / kBandSteps) + 2) {
        std::vector<Point> kept;
        kept.reserve(region.points.size());
        for (const TilePoint& p : region.points) {
            const Point point{p.x, p.y, p.z, p.slot, p.label, p.sensor_dx, p.sensor_dy, p.sensor_dz};
            if (classes.dynamic(p.label) || (!kept.empty() && kept.back().place() == point.place())) continue;
            kept.push_back(point);
            ++begin_[band(p.y) + 1];
        }
        std::vector<TilePoint>().swap(region.points);
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        points_.resize(kept.size());
        std::vector<std::uint32_t> next = begin_;
        for (const Point& p : kept) points_[next[band(p.y)]++] = p;
    }

    std::size_t size() const { return points_.size(); }
    const Point& operator[](std::size_t i) const { return points_[i]; }
    LatticePoint world(std::size_t i) const {
        const LatticePoint o = frame_.origin();
        return {o.x + points_[i].x, o.y + points_[i].y, o.z + points_[i].z};
    }
    /// Requires that there is a point.
    std::uint32_t at(const LatticePoint& place) const {
        const LatticePoint o = frame_.origin();
        const Point wanted{static_cast<std::int32_t>(place.x - o.x),
                           static_cast<std::int32_t>(place.y - o.y),
                           static_cast<std::int32_t>(place.z - o.z),
                           0,
                           0,
                           0,
                           0,
                           0};
        const auto before = [](const Point& p, const Point& q) { return p.place() < q.place(); };
        const std::size_t b = band(wanted.y);
        const auto first = points_.begin() + begin_[b], last = points_.begin() + begin_[b + 1];
        return static_cast<std::uint32_t>(std::lower_bound(first, last, wanted, before) - points_.begin());
    }

    /// The neighbourhood of a point, nearest first; returns its reach2. `width` is where the search starts
    /// and, afterwards, where the next one should: it changes the speed and not the result.
    std::uint32_t find_nearest(std::uint32_t point, const Reach& reach, std::int32_t& width,
                               std::vector<Near>& out) const {
        const auto k = static_cast<std::size_t>(reach.k);
        for (width = std::min(width, reach.radius);; width = std::min(width + width / 2, reach.radius)) {
            find_within(point, width, out);
            if (out.size() >= k || width == reach.radius) break;
        }
        const bool whole_ball = out.size() < k;
        if (!whole_ball) {
            std::nth_element(out.begin(), out.begin() + reach.k - 1, out.end());
            out.resize(k);
        }
        std::sort(out.begin(), out.end());
        if (whole_ball)
            return static_cast<std::uint32_t>(reach.radius) * static_cast<std::uint32_t>(reach.radius);
        const std::uint32_t reach2 = out.back().distance2;
        width = static_cast<std::int32_t>(1.1 * std::sqrt(static_cast<double>(reach2))) + 16;
        return reach2;
    }

  private:
    static constexpr std::int64_t kBandSteps = kLatticePerMetre / 2;
    std::size_t band(std::int32_t y) const {
        return static_cast<std::size_t>(std::max(0, y - y_min_)) / static_cast<std::size_t>(kBandSteps);
    }

    void find_within(std::uint32_t point, std::int32_t width, std::vector<Near>& out) const {
        const Point& p = points_[point];
        const auto before = [](const Point& q, std::int32_t x) { return q.x < x; };
        const std::int64_t width2 = std::int64_t{width} * width;
        out.clear();
        const std::size_t last_band = std::min(band(p.y + width), begin_.size() - 2);
        for (std::size_t b = band(p.y - width); b <= last_band; ++b) {
            const auto end = points_.begin() + begin_[b + 1];
            auto q = std::lower_bound(points_.begin() + begin_[b], end, p.x - width, before);
            for (; q != end && q->x <= p.x + width; ++q) {
                const std::int64_t dx = q->x - p.x, dy = q->y - p.y, dz = q->z - p.z;
                const std::int64_t distance2 = dx * dx + dy * dy + dz * dz;
                if (distance2 <= width2)
                    out.push_back({static_cast<std::uint32_t>(distance2),
                                   static_cast<std::uint32_t>(q - points_.begin())});
            }
        }
    }

    TileFrame frame_;
    std::int32_t y_min_;
    std::vector<std::uint32_t> begin_;  ///< of each band
    std::vector<Point> points_;
};

std::uint64_t hash_of(const LatticePoint& p) {
    return rng::mix(static_cast<std::uint64_t>(p.x) * 0x9e3779b97f4a7c15ull +
                    rng::mix(static_cast<std::uint64_t>(p.y) << 32 ^ static_cast<std::uint64_t>(p.z)));
}

/// Those with the least hashes.
std::vector<LatticePoint> choose_points(const CandidatePoints& points, std::size_t most) {
    using Hashed = std::pair<std::uint64_t, std::uint32_t>;
    std::vector<Hashed> order;
    const auto collect = [&](std::uint64_t below) {
        order.clear();
        for (std::size_t i = 0; i < points.size(); ++i)
            if (const std::uint64_t hash = hash_of(points.world(i)); hash <= below)
                order.emplace_back(hash, static_cast<std::uint32_t>(i));
    };
    // Mostly they are among those below a bound that twice as many are below.
    const double bound = 2 * static_cast<double>(most) / static_cast<double>(points.size() + 1);
    if (bound < 1) collect(static_cast<std::uint64_t>(bound * 0x1p64));
    if (order.size() < most) collect(UINT64_MAX);
    if (order.size() > most) {
        std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end());
        order.resize(most);
    }
    std::vector<LatticePoint> chosen;
    for (const auto& [hash, i] : order) chosen.push_back(points.world(i));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

/// That a point of a place is farther from the edge than its reach.
double chance_to_enclose(std::uint32_t reach2) {
    const double side = 1 - 2 * std::sqrt(static_cast<double>(reach2)) / static_cast<double>(kPlaceSteps);
    return side * side;
}

/// The neighbourhood of a point.
struct Neighbourhood {
    const CandidatePoints& points;
    std::uint32_t point;
    std::span<const CandidatePoints::Near> near;
    std::uint32_t reach2;
    bool whole_ball;  ///< there are no others within the reach
};

/// SampledPoint::step. Two returns are of one scan if they have the same time slot. The angle is the distance
/// between the rays at the place of the point, over its range: noise lies along the rays and does not count.
/// Where other scans take all places in the neighbourhood the angle is at least what the reach says, and
/// counts as that; where nothing else is near the point stands alone and tells none.
std::uint32_t step_of(const Neighbourhood& n) {
    const CandidatePoints::Point& p = n.points[n.point];
    constexpr double kUnit = static_cast<double>(kLatticePerMetre) / TilePoint::kSensorStepsPerMetre;
    const Vec3d ray = Vec3d{static_cast<double>(p.sensor_dx), static_cast<double>(p.sensor_dy),
                            static_cast<double>(p.sensor_dz)} *
                      kUnit;
    const double range2 = dot(ray, ray);
    if (p.sensor_dx == TilePoint::kNoSensor || p.slot == TilePoint::kNoSlot || range2 == 0) return 0;
    double across2 = n.whole_ball ? 0 : static_cast<double>(n.reach2);
    bool found = false;
    for (const CandidatePoints::Near& near : n.near) {
        const CandidatePoints::Point& q = n.points[near.point];
        if (near.point == n.point || q.slot != p.slot) continue;
        const Vec3d d{static_cast<double>(q.x - p.x), static_cast<double>(q.y - p.y),
                      static_cast<double>(q.z - p.z)};
        const double along = dot(d, ray), to_ray2 = std::max(0.0, dot(d, d) - along * along / range2);
        across2 = found ? std::min(across2, to_ray2) : to_ray2;
        found = true;
    }
    return static_cast<std::uint32_t>(std::min(kAngleOne * std::sqrt(across2 / range2), 4e9));
}

void add(const CandidatePoints& points, std::uint32_t from, std::span<const CandidatePoints::Near> near,
         SampledPlace& place) {
    for (const auto& n : near) {
        const auto &a = points[from], &b = points[n.point];
        place.offsets.push_back({static_cast<std::int16_t>(b.x - a.x), static_cast<std::int16_t>(b.y - a.y),
                                 static_cast<std::int16_t>(b.z - a.z)});
    }
}

}  // namespace

SamplePlan plan_sample(const RegionReader& reader) {
    std::vector<Sector> sectors = reader.occupied_sectors();
    std::sort(sectors.begin(), sectors.end(),
              [](const Sector& a, const Sector& b) { return along_curve(a) < along_curve(b); });
    std::uint64_t all = 0;
    for (const Sector& sector : sectors) all += places_of(reader, sector).size();
    const std::uint64_t most = std::min(all, kMostPlaces);
    if (all == 0) return {};
    SamplePlan plan{
        {}, std::clamp(kSampledPoints / most, kFewestPoints, kMostPoints), kPointsReadAround / most};
    std::uint64_t before = 0;
    for (const Sector& sector : sectors) {
        const std::vector<LatticeBox> places = places_of(reader, sector);
        // Those in the middle of `most` equal parts of the curve.
        const auto next = [&] { return (2 * plan.places.size() + 1) * all / (2 * most); };
        while (plan.places.size() < most && next() < before + places.size())
            plan.places.push_back(places[next() - before]);
        before += places.size();
    }
    return plan;
}

SampledPlace sample_place(const SampleTask& task, std::size_t place) {
    const auto& [reader, reach, plan, classes, thickness] = task;
    std::vector<LatticePoint> asked;
    double share = 0;
    for (std::int64_t halo = 0;; halo = reach.radius + 1) {
        tiling::Region region = reader.read(plan.places[place], halo);
        if (halo == 0 && thickness) thickness->see(place, region);
        const CandidatePoints points(region, classes);
        if (halo == 0) {
            asked = choose_points(points, plan.points_per_place);
            share = static_cast<double>(points.size()) / static_cast<double>(asked.size());
            if (points.size() <= plan.few_points) continue;
        }
        const CoveredEdge edge(region.covered, region.frame);
        SampledPlace sample;
        std::vector<CandidatePoints::Near> near;
        std::int32_t width = reach.radius / 16 + 1;
        for (const LatticePoint& p : asked) {
            const std::uint32_t i = points.at(p);
            const std::uint32_t reach2 = points.find_nearest(i, reach, width, near);
            if (!edge.encloses(points[i].x, points[i].y, reach2)) continue;
            const bool whole_ball = near.size() < static_cast<std::size_t>(reach.k);
            const double stands_for = share / (halo == 0 ? chance_to_enclose(reach2) : 1);
            sample.points.push_back({.first = static_cast<std::uint32_t>(sample.offsets.size()),
                                     .count = static_cast<std::uint32_t>(near.size()),
                                     .reach2 = reach2,
                                     .weight = static_cast<std::uint32_t>(kWeightOne * stands_for + 0.5),
                                     .step = step_of({points, i, near, reach2, whole_ball}),
                                     .group = classes.group(points[i].label)});
            add(points, i, near, sample);
        }
        return sample;
    }
}

}  // namespace citysplat::splat
