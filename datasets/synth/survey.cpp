#include "datasets/synth/survey.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace citysplat::synth {

namespace {

constexpr double kMinRange_m = 1.0;
constexpr double kActorRange_m = 50;
constexpr double kOutlierShare = 2e-5;
constexpr double kBeamHalfWidth_rad = 1.5e-3;  // a footprint of 3 cm at 10 m
constexpr double kMixedLeast_m = 0.15, kMixedMost_m = 3.0;

/// Purposes of the random numbers of one ray.
enum Counter : std::uint64_t { kNoise = 0, kAside = 8, kAbove, kMixture, kOutlier, kOutlierRange, kSpeckle };

/// The shortest text that is read as the same number.
std::string number_text(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

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

Scanner scanner_32(double max_range_m) {
    Scanner s{"scanner32", {}, degrees(45), 10, max_range_m};
    for (int beam = 0; beam < 32; ++beam) s.elevations_rad.push_back(degrees(-30.67 + beam * (41.34 / 31)));
    return s;
}

Scanner profile_scanner(double max_range_m) { return {"profile", {0.0}, degrees(90), 100, max_range_m}; }

std::string sensor_toml(const Scanner& scanner, double columns_per_s, double noise_m) {
    const auto list = [&](const auto& value_of) {
        std::string text;
        for (std::size_t beam = 0; beam < scanner.elevations_rad.size(); ++beam)
            text += (beam == 0 ? "" : beam % 8 == 0 ? ",\n  " : ", ") + number_text(value_of(beam));
        return "[\n  " + text + "]\n";
    };
    const double columns = std::floor(columns_per_s / scanner.revolutions_per_s + 0.5);
    return "name = \"" + scanner.name + " of a synthetic drive\"\n" +
           "kind = \"spinning\"\n"
           "source = \"Written by `citysplat synth` beside its drive; it leans back by " +
           number_text(scanner.pitch_rad * 180 / exact::kPi) + "° (--mount-angles 0,-" +
           number_text(scanner.pitch_rad * 180 / exact::kPi) +
           ",0).\"\n\n[spin]\nrate_hz = " + number_text(scanner.revolutions_per_s) +
           "\ncolumns_per_turn = " + number_text(columns) +
           "\nfrom_deg = 180\nsense = \"clockwise\"\n\n[beams]\nelevation_deg = " +
           list([&](std::size_t beam) { return scanner.elevations_rad[beam] * 180 / exact::kPi; }) +
           // A column is fired in the middle of its time.
           "time_us = " + list([&](std::size_t) { return 0.5e6 / columns_per_s; }) +
           "\n[range]\nmin_m = " + number_text(kMinRange_m) +
           "\nmax_m = " + number_text(scanner.max_range_m) +
           "\n\n[error]\nsigma_m = " + number_text(noise_m) + "\n";
}

namespace {

/// What one ray brought back.
struct Return {
    double range_m = 0;  ///< 0: nothing
    double cosine = 0, reflectance = 0;
    std::uint8_t label = 0;
};

bool between_surfaces(const Return& a, const Return& b) {
    const double gap = std::fabs(a.range_m - b.range_m);
    return a.range_m > 0 && b.range_m > 0 && gap > kMixedLeast_m && gap < kMixedMost_m;
}

}  // namespace

/// A chunk while it is fired: where the scanner is and who is around at the moment of the current column.
class Survey::Sweep {
  public:
    Sweep(const Survey& survey, const CityScene& scene, double begin_s, double end_s)
        : survey_(survey),
          scene_(scene),
          mount_(exact::sin_cos(survey.scanner_.pitch_rad)),
          perfect_(survey.drive_.params().localisation_m == 0),
          before_(survey.elevations_.size()) {
        first_pose_ = static_cast<std::int64_t>(std::floor(begin_s * Drive::kPosesPerSecond));
        const auto last = static_cast<std::int64_t>(std::floor(end_s * Drive::kPosesPerSecond)) + 1;
        for (std::int64_t k = first_pose_; k <= last; ++k) {
            true_poses_.push_back(survey.drive_.true_pose(k));
            recorded_poses_.push_back(perfect_ ? true_poses_.back() : survey.drive_.recorded_pose(k));
        }
        const Vec3d a = true_poses_.front().translation, b = true_poses_.back().translation;
        const double reach_m = kActorRange_m + length(b - a);
        crowd_.emplace(survey.actors_, Crowd::Place{a.x, a.y, reach_m}, Crowd::Span{begin_s, end_s});
    }

    void fire_column(std::int64_t column, PointBatch& out) {
        time_s_ = survey_.column_time_s(column);
        pose_ = pose_at(true_poses_);
        recorded_ = perfect_ ? pose_ : pose_at(recorded_poses_);
        crowd_->at(time_s_, pose_.translation.x, pose_.translation.y, actors_);
        const double turns = time_s_ * survey_.scanner_.revolutions_per_s;
        azimuth_rad_ = 2 * exact::kPi * (turns - std::floor(turns)) - exact::kPi;
        azimuth_ = exact::sin_cos(azimuth_rad_);
        const std::size_t beams = survey_.elevations_.size();
        for (std::size_t beam = 0; beam < beams; ++beam)
            fire_beam(beam, rng::key(survey_.key_, static_cast<std::uint64_t>(column) * beams + beam), out);
    }

  private:
    Pose pose_at(const std::vector<Pose>& poses) const {
        const double grid = std::floor(time_s_ * Drive::kPosesPerSecond);
        const auto k = static_cast<std::size_t>(static_cast<std::int64_t>(grid) - first_pose_);
        return Drive::interpolate(poses[k], poses[k + 1], time_s_ * Drive::kPosesPerSecond - grid);
    }

    /// Direction of a beam in the body's frame: clockwise from above, and the axis leans back.
    Vec3d aim(std::size_t beam) const {
        const exact::SinCos e = survey_.elevations_[beam];
        const Vec3d v{e.cos * azimuth_.cos, -e.cos * azimuth_.sin, e.sin};
        return {mount_.cos * v.x - mount_.sin * v.z, v.y, mount_.sin * v.x + mount_.cos * v.z};
    }

    Return shoot(Vec3d in_body) const {
        const Ray ray{pose_.translation, rotate(pose_.rotation, in_body)};
        Return r;
        double reach = survey_.scanner_.max_range_m;
        Vec3d normal{0, 0, 0};
        if (const auto hit = scene_.intersect(ray, reach)) {
            reach = hit->t;
            r = {hit->t, 0, hit->look.reflectance, hit->look.label};
            normal = hit->normal;
        }
        if (const auto hit = intersect(actors_, ray, reach)) {
            r = {hit->encounter.t, 0, hit->look.reflectance, hit->look.label};
            normal = hit->encounter.normal;
        }
        r.cosine = std::fabs(dot(normal, ray.direction));
        if (r.range_m < kMinRange_m || !detectable(r.reflectance, r.cosine, r.range_m)) r.range_m = 0;
        return r;
    }

    /// The range where the beam's footprint covers two surfaces: somewhere between them. Asked only where the
    /// neighbouring column saw something else, so that most beams cost one ray.
    double mixed_range(const Return& r, Vec3d in_body, std::uint64_t key) const {
        const Vec3d aside = normalized(cross(Vec3d{0, 0, 1}, in_body)), above = cross(in_body, aside);
        const double w = kBeamHalfWidth_rad;
        const Return other = shoot(normalized(in_body + rng::uniform(key, kAside, -w, w) * aside +
                                              rng::uniform(key, kAbove, -w, w) * above));
        if (!between_surfaces(r, other)) return r.range_m;
        return r.range_m + (other.range_m - r.range_m) * rng::uniform(key, kMixture);
    }

    void fire_beam(std::size_t beam, std::uint64_t key, PointBatch& out) {
        const SurveyParams& params = survey_.params_;
        const Vec3d in_body = aim(beam);
        Return r = shoot(in_body);
        const bool edge = between_surfaces(r, before_[beam]);
        before_[beam] = r;
        if (params.outliers && rng::uniform(key, kOutlier) < kOutlierShare) {
            const double reach = r.range_m > 0 ? r.range_m : survey_.scanner_.max_range_m;
            r = {rng::uniform(key, kOutlierRange, kMinRange_m, reach), 1, 0.02, 0};
        } else if (r.range_m == 0) {
            return;
        } else if (edge && params.mixed_pixels) {
            r.range_m = mixed_range(r, in_body, key);
        }
        if (params.noise_m > 0) r.range_m += params.noise_m * rng::gaussian(key, kNoise);
        const double speckle = params.noise_m > 0 ? rng::uniform(key, kSpeckle, 0.95, 1.05) : 1.0;
        emit(r, in_body, speckle, out);
    }

    void emit(const Return& r, Vec3d in_body, double speckle, PointBatch& out) const {
        const Vec3d at = recorded_.translation + rotate(recorded_.rotation, r.range_m * in_body);
        out.x.push_back(survey_.world_origin_.x + at.x);
        out.y.push_back(survey_.world_origin_.y + at.y);
        out.z.push_back(survey_.world_origin_.z + at.z);
        out.gps_time.push_back(Drive::kBegin_s + time_s_);
        const double level = std::min(power(r.reflectance, r.cosine, r.range_m) * speckle, 1.0);
        out.intensity.push_back(static_cast<std::uint16_t>(level * 65535.0));
        out.label.push_back(r.label);
        out.scan_angle_deg.push_back(static_cast<float>(azimuth_rad_ * 180 / exact::kPi));
    }

    const Survey& survey_;
    const CityScene& scene_;
    exact::SinCos mount_;
    bool perfect_;
    std::int64_t first_pose_;
    std::vector<Pose> true_poses_, recorded_poses_;  ///< of the grid, from first_pose_ on
    std::optional<Crowd> crowd_;
    std::vector<Return> before_;  ///< of the column before, by beam

    double time_s_ = 0, azimuth_rad_ = 0;
    exact::SinCos azimuth_{0, 1};
    Pose pose_, recorded_;
    std::vector<Actor> actors_;
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
    Sweep sweep(*this, scene, column_time_s(first), column_time_s(end - 1));
    std::int64_t columns = 0;
    for (std::int64_t column = first; column < end; column += every, ++columns)
        sweep.fire_column(column, out);
    return columns * static_cast<std::int64_t>(elevations_.size());
}

}  // namespace citysplat::synth
