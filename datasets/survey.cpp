#include "datasets/survey.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr double kMinRange_m = 1.0;
constexpr double kOutlierShare = 2e-5, kMixedShare = 0.3;
constexpr double kMixedLeast_m = 0.15, kMixedMost_m = 3.0;

/// Purposes of the random numbers of one ray.
enum Counter : std::uint64_t { kNoise = 0, kMixed = 8, kMixture, kOutlier, kOutlierRange, kSpeckle };

double degrees(double d) { return d * exact::kPi / 180; }

/// Received power relative to a white wall met square at close range.
double power(double reflectance, double cosine, double range_m) {
    return reflectance * cosine / (1 + range_m * range_m / (45.0 * 45.0));
}

/// A surface returns enough light up to 100 m if it is 10 % bright and met square; less if darker or
/// slanting.
bool detectable(double reflectance, double cosine, double range_m) {
    return range_m * range_m < 100.0 * 100.0 * (reflectance * cosine / 0.1);
}

}  // namespace

Scanner scanner_32() {
    Scanner s{"scanner32", {}, degrees(45), 10, 70};
    for (int beam = 0; beam < 32; ++beam) s.elevations_rad.push_back(degrees(-30.67 + beam * (41.34 / 31)));
    return s;
}

Scanner profile_scanner() { return {"profile", {0.0}, degrees(90), 100, 70}; }

/// What one ray brought back.
struct Survey::Return {
    double range_m = 0;  ///< 0: nothing
    double cosine = 0, reflectance = 0;
    std::uint8_t label = 0;
};

/// The state of a chunk while it is fired: poses of the grid around it and the actors at the moment.
struct Survey::Shooter {
    const Survey& survey;
    std::int64_t first_pose;
    std::vector<Pose> true_poses, recorded_poses;
    std::vector<Actor> actors;

    Shooter(const Survey& s, double begin_s, double end_s) : survey(s) {
        first_pose = static_cast<std::int64_t>(std::floor(begin_s * Drive::kPosesPerSecond));
        const auto last = static_cast<std::int64_t>(std::floor(end_s * Drive::kPosesPerSecond)) + 1;
        for (std::int64_t k = first_pose; k <= last; ++k) {
            true_poses.push_back(s.drive_.true_pose(k));
            recorded_poses.push_back(s.drive_.recorded_pose(k));
        }
    }
    Pose at(const std::vector<Pose>& poses, double time_s) const {
        const double grid = std::floor(time_s * Drive::kPosesPerSecond);
        const auto k = static_cast<std::size_t>(static_cast<std::int64_t>(grid) - first_pose);
        return Drive::interpolate(poses[k], poses[k + 1], time_s * Drive::kPosesPerSecond - grid);
    }

    Return shoot(const CityScene& scene, const Ray& ray) const {
        Return r;
        double reach = survey.scanner_.max_range_m;
        Vec3d normal{0, 0, 0};
        if (const auto hit = scene.intersect(ray, reach)) {
            reach = hit->t;
            r = {hit->t, 0, hit->look.reflectance, hit->look.label};
            normal = hit->normal;
        }
        if (const auto hit = Actors::intersect(actors, ray, reach)) {
            r = {hit->encounter.t, 0, hit->look.reflectance, hit->look.label};
            normal = hit->encounter.normal;
        }
        r.cosine = std::fabs(dot(normal, ray.direction));
        if (r.range_m < kMinRange_m || !detectable(r.reflectance, r.cosine, r.range_m)) r.range_m = 0;
        return r;
    }
};

Survey::Survey(const Drive& drive, const Actors& actors, Scanner scanner, SurveyParams params,
               Vec3d world_origin)
    : drive_(drive),
      actors_(actors),
      scanner_(std::move(scanner)),
      params_(params),
      world_origin_(world_origin),
      columns_(static_cast<std::int64_t>(drive.duration_s() * params.columns_per_s)),
      key_(rng::key(key_of(drive.params().seed, Purpose::survey, {}), scanner_.elevations_rad.size())) {
    for (const double e : scanner_.elevations_rad) elevations_.push_back(exact::sin_cos(e));
}

std::int64_t Survey::columns_per_chunk() const {
    return kRaysPerChunk / static_cast<std::int64_t>(elevations_.size());
}

std::int64_t Survey::chunk_count() const {
    return (columns_ + columns_per_chunk() - 1) / columns_per_chunk();
}

Survey::Surroundings Survey::surroundings(std::int64_t chunk) const {
    const std::int64_t first = chunk * columns_per_chunk(),
                       end = std::min(columns_, first + columns_per_chunk());
    const PathPoint a = drive_.path_at(drive_.travelled_m(column_time_s(first)));
    const PathPoint b = drive_.path_at(drive_.travelled_m(column_time_s(end - 1)));
    const double margin = scanner_.max_range_m + length(Vec3d{a.x - b.x, a.y - b.y, 0}) + 2.0;
    const double x = (a.x + b.x) / 2, y = (a.y + b.y) / 2;
    return {cell_at(x, y), cells_near(x, y, x, y, margin)};
}

std::int64_t Survey::fire(std::int64_t chunk, const CityScene& scene, PointBatch& out,
                          std::int64_t every) const {
    out.clear();
    const std::int64_t first = chunk * columns_per_chunk(),
                       end = std::min(columns_, first + columns_per_chunk());
    Shooter shooter(*this, column_time_s(first), column_time_s(end - 1));
    const bool exact_position = drive_.params().localisation_m == 0;
    const auto mount = exact::sin_cos(scanner_.pitch_rad);
    std::vector<Return> previous(elevations_.size());
    std::int64_t rays = 0;
    for (std::int64_t column = first; column < end; column += every) {
        const double time_s = column_time_s(column);
        const Pose pose = shooter.at(shooter.true_poses, time_s);
        const Pose recorded = exact_position ? pose : shooter.at(shooter.recorded_poses, time_s);
        actors_.near(pose.translation.x, pose.translation.y, scanner_.max_range_m, time_s, shooter.actors);
        const double turns = time_s * scanner_.revolutions_per_s;
        const double azimuth_rad = 2 * exact::kPi * (turns - std::floor(turns)) - exact::kPi;
        const auto azimuth = exact::sin_cos(azimuth_rad);
        for (std::size_t beam = 0; beam < elevations_.size(); ++beam, ++rays) {
            const auto elevation = elevations_[beam];
            // Clockwise from above; then the axis leans back, and with it the front goes up.
            const Vec3d in_scanner{elevation.cos * azimuth.cos, -elevation.cos * azimuth.sin, elevation.sin};
            const Vec3d in_body{mount.cos * in_scanner.x - mount.sin * in_scanner.z, in_scanner.y,
                                mount.sin * in_scanner.x + mount.cos * in_scanner.z};
            const Ray ray{pose.translation, rotate(pose.rotation, in_body)};
            const Return r = shooter.shoot(scene, ray);
            const Return before = previous[beam];
            previous[beam] = r;

            const std::uint64_t key =
                rng::key(key_, static_cast<std::uint64_t>(column) * elevations_.size() + beam);
            double range_m = r.range_m;
            std::uint16_t seen = r.label;
            if (params_.outliers && rng::uniform(key, kOutlier) < kOutlierShare) {
                const double reach = range_m > 0 ? range_m : scanner_.max_range_m;
                range_m = rng::uniform(key, kOutlierRange, kMinRange_m, reach);
                seen = 0;
            } else if (range_m == 0) {
                continue;
            } else if (const double gap = std::fabs(range_m - before.range_m);
                       params_.mixed_pixels && before.range_m > 0 && gap > kMixedLeast_m &&
                       gap < kMixedMost_m && rng::uniform(key, kMixed) < kMixedShare) {
                range_m += (before.range_m - range_m) * rng::uniform(key, kMixture);
            }
            if (params_.noise_m > 0) range_m += params_.noise_m * rng::gaussian(key, kNoise);

            const Vec3d at = exact_position
                                 ? ray.origin + range_m * ray.direction
                                 : recorded.translation + rotate(recorded.rotation, range_m * in_body);
            out.x.push_back(world_origin_.x + at.x);
            out.y.push_back(world_origin_.y + at.y);
            out.z.push_back(world_origin_.z + at.z);
            out.gps_time.push_back(Drive::kBegin_s + time_s);
            const double speckle = params_.noise_m > 0 ? rng::uniform(key, kSpeckle, 0.95, 1.05) : 1.0;
            const double level = seen == 0 ? 0.02 : power(r.reflectance, r.cosine, range_m) * speckle;
            out.intensity.push_back(static_cast<std::uint16_t>(std::min(level, 1.0) * 65535.0));
            out.label.push_back(seen);
            out.scan_angle_deg.push_back(static_cast<float>(azimuth_rad * 180 / exact::kPi));
        }
    }
    return rays;
}

}  // namespace citysplat::synth
