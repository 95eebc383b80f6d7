#include "objects/registration.hpp"

#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::objects {

namespace {

constexpr int kMostSteps = 12;  ///< per width of cells
/// Distances from the surface at which a point counts for a quarter, by width of cells.
constexpr std::array<double, 3> kDistanceScale_m{0.10, 0.05, 0.03};
constexpr double kIntensityScale = 0.1;
/// Neighbouring points err alike: however many there are, they count as so many of this deviation.
constexpr double kIndependentPoints = 200, kPointDeviation_m = 0.02;
/// Steps below this end the search: a lattice step.
constexpr double kSmallShift_m = 1e-4, kSmallTurn_rad = 2e-5;

using Vector6 = std::array<double, 6>;

/// A·x = b of a least squares problem with six unknowns: turn, then shift.
struct NormalEquations {
    std::array<Vector6, 6> a{};
    Vector6 b{};

    /// Adds weight · (residual + jacobian · x)².
    void add(const Vector6& jacobian, double residual, double weight) {
        for (std::size_t i = 0; i < 6; ++i) {
            for (std::size_t j = 0; j <= i; ++j) a[i][j] += weight * jacobian[i] * jacobian[j];
            b[i] -= weight * jacobian[i] * residual;
        }
    }
    void scale(double by) {
        for (std::size_t i = 0; i < 6; ++i) {
            for (std::size_t j = 0; j <= i; ++j) a[i][j] *= by;
            b[i] *= by;
        }
    }
    /// By Cholesky's method. Requires a positive definite matrix, which the prior makes it.
    Vector6 solve() const {
        std::array<Vector6, 6> l{};
        for (std::size_t i = 0; i < 6; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = a[i][j];
                for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
                l[i][j] = i == j ? std::sqrt(sum) : sum / l[j][j];
            }
        Vector6 x{};
        for (std::size_t i = 0; i < 6; ++i) {
            double sum = b[i];
            for (std::size_t k = 0; k < i; ++k) sum -= l[i][k] * x[k];
            x[i] = sum / l[i][i];
        }
        for (std::size_t i = 6; i-- > 0;) {
            double sum = x[i];
            for (std::size_t k = i + 1; k < 6; ++k) sum -= l[k][i] * x[k];
            x[i] = sum / l[i][i];
        }
        return x;
    }
};

/// Weight of a residual under the kernel of Geman and McClure.
double robust(double residual, double scale) {
    const double q = residual / scale, w = 1 / (1 + q * q);
    return w * w;
}

Vector6 jacobian_of(Vec3d arm, Vec3d along) {
    const Vec3d turn = cross(arm, along);
    return {turn.x, turn.y, turn.z, along.x, along.y, along.z};
}

Vec3d middle_of(std::span<const ObjectPoint> points) {
    Vec3d sum{0, 0, 0};
    for (const ObjectPoint& p : points) sum = sum + p.place;
    return points.empty() ? sum : sum * (1 / static_cast<double>(points.size()));
}

class Search {
  public:
    Search(const SurfacePyramid& surface, std::span<const ObjectPoint> points, const Pose& start,
           const RegistrationOptions& options)
        : surface_(surface), points_(points), options_(options), pose_(start), middle_(middle_of(points)) {}

    Registration run() {
        for (std::size_t level = 0; level < SurfacePyramid::kCellSteps.size(); ++level)
            for (int step = 0; step < kMostSteps; ++step)
                if (!advance(level)) break;
        return judged();
    }

  private:
    /// One step; false when it was too small to go on.
    bool advance(std::size_t level) {
        const SurfaceMap& map = surface_.level(level);
        const Vec3d pivot = pose_.apply(middle_);
        NormalEquations equations;
        double met = 0;
        for (const ObjectPoint& point : points_) {
            const Vec3d q = pose_.apply(point.place);
            const SurfaceMap::Patch* patch = map.nearest(q);
            if (!patch) continue;
            met += 1;
            const Vec3d off = q - patch->centre, arm = q - pivot;
            const double distance = dot(patch->normal, off);
            const double near = robust(distance, kDistanceScale_m[level]);
            equations.add(jacobian_of(arm, patch->normal), distance, options_.geometry_weight * near);
            const double difference =
                patch->intensity + dot(patch->gradient, off) - static_cast<double>(point.intensity) / 65535;
            equations.add(jacobian_of(arm, patch->gradient), difference,
                          (1 - options_.geometry_weight) * near * robust(difference, kIntensityScale));
        }
        if (met == 0) return false;
        equations.scale(std::min(1.0, kIndependentPoints / met) / (kPointDeviation_m * kPointDeviation_m));
        add_prior(equations, pivot);
        const Vector6 x = equations.solve();
        const Vec3d turn{x[0], x[1], x[2]}, shift{x[3], x[4], x[5]};
        const Quaternion r = from_rotation_vector(turn);
        pose_ = Pose{pivot + shift - rotate(r, pivot), r} * pose_;
        return length(shift) > kSmallShift_m || length(turn) > kSmallTurn_rad;
    }

    void add_prior(NormalEquations& equations, Vec3d pivot) const {
        const Vec3d shift = pivot - middle_, turn = rotation_vector(pose_.rotation);
        const double for_turn = 1 / (options_.box_turn_deg * exact::kRadPerDegree);
        const double for_shift = 1 / options_.box_shift_m;
        const Vector6 total{turn.x, turn.y, turn.z, shift.x, shift.y, shift.z};
        for (std::size_t i = 0; i < 6; ++i) {
            const double weight = i < 3 ? for_turn * for_turn : for_shift * for_shift;
            Vector6 one{};
            one[i] = 1;
            equations.add(one, total[i], weight);
        }
    }

    Registration judged() const {
        Registration r;
        r.correction = pose_;
        r.shift_m = length(pose_.apply(middle_) - middle_);
        r.turn_deg = length(rotation_vector(pose_.rotation)) * exact::kDegreesPerRad;
        std::size_t met = 0, on = 0;
        for (const ObjectPoint& point : points_) {
            const Vec3d q = pose_.apply(point.place);
            const SurfaceMap::Patch* patch = surface_.level(1).nearest(q);
            if (!patch) continue;
            ++met;
            if (std::fabs(dot(patch->normal, q - patch->centre)) <= options_.inlier_m) ++on;
        }
        const auto share = [](std::size_t part, std::size_t whole) {
            return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
        };
        r.overlap = share(met, points_.size());
        r.inliers = share(on, met);
        r.accepted = !r.apart(options_) && r.inliers >= options_.least_inliers &&
                     r.shift_m <= options_.most_shift_m && r.turn_deg <= options_.most_turn_deg;
        return r;
    }

    const SurfacePyramid& surface_;
    std::span<const ObjectPoint> points_;
    const RegistrationOptions& options_;
    Pose pose_;
    Vec3d middle_;
};

}  // namespace

Quaternion from_rotation_vector(Vec3d rotation_rad) {
    const double angle = length(rotation_rad);
    if (angle < 1e-12) return {};
    const auto half = exact::sin_cos(angle / 2);
    const Vec3d v = rotation_rad * (half.sin / angle);
    return {v.x, v.y, v.z, half.cos};
}

Vec3d rotation_vector(const Quaternion& q) { return Vec3d{q.x, q.y, q.z} * (q.w < 0 ? -2.0 : 2.0); }

SurfacePyramid::SurfacePyramid(Vec3d min, Vec3d max)
    : levels_{SurfaceMap({min, max, kCellSteps[0]}), SurfaceMap({min, max, kCellSteps[1]}),
              SurfaceMap({min, max, kCellSteps[2]})} {}

void SurfacePyramid::add(std::span<const ObjectPoint> points) {
    for (SurfaceMap& level : levels_) level.add(points);
}

void SurfacePyramid::remove(std::span<const ObjectPoint> points) {
    for (SurfaceMap& level : levels_) level.remove(points);
}

Registration register_points(const SurfacePyramid& surface, std::span<const ObjectPoint> points,
                             const Pose& start, const RegistrationOptions& options) {
    return Search(surface, points, start, options).run();
}

std::vector<ObjectPoint> moved(std::span<const ObjectPoint> points, const Pose& motion) {
    std::vector<ObjectPoint> result(points.begin(), points.end());
    for (ObjectPoint& p : result) {
        p.place = on_lattice(motion.apply(p.place));
        p.to_sensor = rotate(motion.rotation, p.to_sensor);
    }
    return result;
}

std::vector<ObjectPoint> sample_of(std::span<const ObjectPoint> points, std::size_t count) {
    if (points.size() <= count) return {points.begin(), points.end()};
    const double keep = static_cast<double>(count) / static_cast<double>(points.size());
    std::vector<ObjectPoint> result;
    for (const ObjectPoint& p : points) {
        const auto word = [](double v) { return static_cast<std::uint64_t>(to_lattice(v)); };
        const std::uint64_t hash = rng::key(rng::key(word(p.place.x), word(p.place.y)), word(p.place.z));
        if (static_cast<double>(hash >> 11) * 0x1p-53 < keep) result.push_back(p);
    }
    return result;
}

}  // namespace citysplat::objects
