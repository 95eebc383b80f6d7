#include "objects/frame_alignment.hpp"

#include "core/math/math_hd.hpp"
#include "objects/end_ties.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace citysplat::objects {

namespace {

/// Points of a frame that take part in its registration.
constexpr std::size_t kSample = 1500;
/// A frame of fewer points says nothing.
constexpr std::size_t kLeastPoints = 10;
/// A frame of fewer points is no surface that others could be laid on. Where all have fewer, the boxes put
/// them together first.
constexpr std::size_t kSurface = 400;
constexpr int kRounds = 3;
/// Where a cell of this width (4 cm) or one around it holds a point, the object was seen.
constexpr std::int64_t kSeenCellSteps = 328;

Vec3d middle_of(std::span<const ObjectPoint> points) {
    Vec3d sum{0, 0, 0};
    for (const ObjectPoint& p : points) sum = sum + p.place;
    return sum * (1 / static_cast<double>(std::max<std::size_t>(1, points.size())));
}

class Aligner {
  public:
    Aligner(const ObjectCut& cut, const RegistrationOptions& options, const CancelToken& cancel)
        : cut_(cut),
          options_(options),
          wide_(widened(options)),
          cancel_(cancel),
          room_(room_of(cut.track.size)),
          surface_(room_.min, room_.max),
          placed_(cut.frames.size()) {
        result_.frames.resize(cut.frames.size());
        for (const ObjectFrame& frame : cut.frames) samples_.push_back(sample_of(frame.points, kSample));
    }

    Alignment run() {
        std::vector<std::size_t> order = frames_by_points();
        if (order.empty()) return std::move(result_);
        const Registration by_box{{}, 0, 0, 1, 1, true};
        if (cut_.frames[order.front()].points.size() >= kSurface) {
            place(order.front(), by_box);
            order.erase(order.begin());
            while (add_some(order)) {
            }
        } else {
            for (const std::size_t i : order) place(i, by_box);
        }
        for (int round = 0; round < kRounds; ++round) {
            for (std::size_t i = 0; i < cut_.frames.size(); ++i)
                if (result_.frames[i].accepted) refine(i, round + 1 == kRounds);
            if (round + 1 < kRounds) tie_ends();
        }
        if (std::none_of(result_.frames.begin(), result_.frames.end(),
                         [](const AlignedFrame& f) { return f.accepted; }))
            return std::move(result_);
        centre();
        collect();
        return std::move(result_);
    }

  private:
    /// As long as frames are laid on the largest one, whose box errs as well, bounds are wider. centre() asks
    /// for what was given.
    static RegistrationOptions widened(RegistrationOptions options) {
        options.most_shift_m *= 1.5;
        options.most_turn_deg *= 1.5;
        return options;
    }

    std::vector<std::size_t> frames_by_points() const {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < cut_.frames.size(); ++i)
            if (cut_.frames[i].points.size() >= kLeastPoints) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return cut_.frames[a].points.size() > cut_.frames[b].points.size();
        });
        return order;
    }

    void place(std::size_t i, const Registration& r) {
        result_.frames[i] = {true, r.correction, r.inliers, r.overlap};
        placed_[i] = moved(cut_.frames[i].points, r.correction);
        surface_.add(placed_[i]);
    }

    /// Goes once through the frames that wait; those that found their place leave. False when none did.
    bool add_some(std::vector<std::size_t>& waiting) {
        std::vector<std::size_t> still;
        for (const std::size_t i : waiting) {
            cancel_.check();
            const Registration r = register_points(surface_, samples_[i], nearest_correction(i), wide_);
            result_.frames[i].inliers = r.inliers;
            result_.frames[i].overlap = r.overlap;
            if (r.accepted)
                place(i, r);
            else
                still.push_back(i);
        }
        const bool some = still.size() < waiting.size();
        waiting = std::move(still);
        return some && !waiting.empty();
    }

    /// Boxes of neighbouring frames err alike.
    Pose nearest_correction(std::size_t i) const {
        const AlignedFrame* best = nullptr;
        double best_s = 0;
        for (std::size_t k = 0; k < result_.frames.size(); ++k) {
            const double apart_s = std::abs(cut_.frames[k].time_s - cut_.frames[i].time_s);
            if (!result_.frames[k].accepted || (best && apart_s >= best_s)) continue;
            best = &result_.frames[k], best_s = apart_s;
        }
        constexpr double kAlike_s = 0.35;
        return best && best_s <= kAlike_s ? best->object_from_box : Pose{};
    }

    /// Lays a frame on all the others. In the last round those that do not fit leave.
    void refine(std::size_t i, bool last) {
        cancel_.check();
        AlignedFrame& frame = result_.frames[i];
        surface_.remove(placed_[i]);
        const Registration r = register_points(surface_, samples_[i], frame.object_from_box, wide_);
        if (r.accepted) return place(i, r);
        if (last && !r.apart(options_))
            frame = {false, {}, r.inliers, r.overlap};
        else
            surface_.add(placed_[i]);
    }

    /// Moves looks along the object, those that see the same end together.
    void tie_ends() {
        std::vector<LookAlong> looks;
        for (std::size_t i = 0; i < placed_.size(); ++i) {
            if (!result_.frames[i].accepted) continue;
            looks.push_back(look_along(placed_[i], surface_.level(1)));
            const Vec3d middle = middle_of(cut_.frames[i].points);
            looks.back().from_box_m = result_.frames[i].object_from_box.apply(middle).x - middle.x;
        }
        const auto shifts = shifts_along(looks, missing_length(cut_.track.size, placed_),
                                         {options_.box_shift_m, options_.box_length_m});
        auto shift = shifts.begin();
        for (std::size_t i = 0; i < placed_.size(); ++i) {
            if (!result_.frames[i].accepted) continue;
            surface_.remove(placed_[i]);
            result_.frames[i].object_from_box.translation.x += *shift++;
            placed_[i] = moved(cut_.frames[i].points, result_.frames[i].object_from_box);
            surface_.add(placed_[i]);
        }
    }

    /// The frame of the largest look is as wrong as its box; the mean of all boxes is less so.
    void centre() {
        Vec3d shift{0, 0, 0}, turn{0, 0, 0};
        double n = 0;
        for (const AlignedFrame& f : result_.frames) {
            if (!f.accepted) continue;
            shift = shift + f.object_from_box.translation;
            turn = turn + rotation_vector(f.object_from_box.rotation);
            n += 1;
        }
        const Pose mean{shift * (1 / n), from_rotation_vector(turn * (1 / n))};
        const Pose back = inverse(mean);
        for (AlignedFrame& f : result_.frames) {
            if (!f.accepted) continue;
            f.object_from_box = back * f.object_from_box;
            const double turn_deg =
                length(rotation_vector(f.object_from_box.rotation)) * exact::kDegreesPerRad;
            f.accepted = length(f.object_from_box.translation) <= options_.most_shift_m &&
                         turn_deg <= options_.most_turn_deg;
        }
    }

    void collect() {
        SurfaceMap before({room_.min, room_.max, SurfacePyramid::kCellSteps[0]}), after = before;
        for (std::size_t i = 0; i < cut_.frames.size(); ++i) {
            if (!result_.frames[i].accepted) continue;
            ++result_.accepted;
            const auto points = moved(cut_.frames[i].points, result_.frames[i].object_from_box);
            before.add(cut_.frames[i].points);
            after.add(points);
            result_.points.insert(result_.points.end(), points.begin(), points.end());
        }
        std::sort(result_.points.begin(), result_.points.end(), comes_before);
        result_.thickness_before_m = before.mean_thickness_m();
        result_.thickness_m = after.mean_thickness_m();
    }

    const ObjectCut& cut_;
    const RegistrationOptions& options_;
    RegistrationOptions wide_;
    const CancelToken& cancel_;
    ObjectRoom room_;
    SurfacePyramid surface_;
    std::vector<std::vector<ObjectPoint>> samples_, placed_;
    Alignment result_;
};

}  // namespace

ObjectRoom room_of(const ObjectSize& size) {
    constexpr double kMargin_m = 0.75;
    return {{-size.length_m / 2 - kMargin_m, -size.width_m / 2 - kMargin_m, -kMargin_m},
            {size.length_m / 2 + kMargin_m, size.width_m / 2 + kMargin_m, size.height_m + kMargin_m}};
}

Alignment align_frames(const ObjectCut& cut, const RegistrationOptions& options, const CancelToken& cancel) {
    return Aligner(cut, options, cancel).run();
}

namespace {

/// y = at + slope·x, seen from above.
struct SideLine {
    double at = 0, slope = 0;
    double y(double x) const { return at + slope * x; }
};

/// Least squares over the points within `tolerance_m` of the line. Points that do not spread along the object
/// say nothing about its slope.
SideLine fitted(const SideLine& line, std::span<const Vec3d> points, double tolerance_m) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const Vec3d& p : points) {
        if (std::fabs(p.y - line.y(p.x)) > tolerance_m) continue;
        n += 1, x += p.x, y += p.y, xx += p.x * p.x, xy += p.x * p.y;
    }
    if (n == 0) return line;
    const double spread = xx / n - x / n * (x / n);
    constexpr double kLeastSpread_m2 = 0.25, kSteepest = 0.1;
    const double slope = spread < kLeastSpread_m2 ? 0 : (xy / n - x / n * (y / n)) / spread;
    if (std::fabs(slope) > kSteepest) return line;
    return {y / n - slope * (x / n), slope};
}

/// Where the middle plane of an object is, y = const, at a place along the object: half the width of its box
/// from the side that was seen. No surface tells where it is, because the back of a car may slide along
/// itself; and the side is known better than the middle of the boxes. The side is a line, not a number: where
/// the boxes head wrong by a degree, its ends are 8 cm apart. 0 when the box is off by more than boxes are.
double middle_plane(const ObjectSize& size, std::span<const ObjectPoint> points, double at_x) {
    constexpr double kBodyFrom = 0.2, kBodyTo = 0.6;  // of the height: below the outside mirrors
    constexpr double kOutermost = 0.02, kMostOff_m = 0.15;
    std::array<std::vector<Vec3d>, 2> sides;  // right, left
    for (const ObjectPoint& p : points)
        if (p.place.z >= kBodyFrom * size.height_m && p.place.z <= kBodyTo * size.height_m)
            sides[p.place.y > 0 ? 1 : 0].push_back(p.place);
    const std::size_t left = sides[1].size() >= sides[0].size() ? 1 : 0;
    const std::vector<Vec3d>& body = sides[left];
    if (body.empty()) return 0;
    std::vector<double> out;
    for (const Vec3d& p : body) out.push_back(std::fabs(p.y));
    std::sort(out.begin(), out.end());
    const double sign = left == 1 ? 1 : -1;
    SideLine side{
        sign * out[static_cast<std::size_t>((1 - kOutermost) * static_cast<double>(out.size() - 1))], 0};
    for (const double tolerance_m : {0.15, 0.08, 0.05, 0.05}) side = fitted(side, body, tolerance_m);
    const double off = side.y(at_x) - sign * size.width_m / 2;
    return std::fabs(off) <= kMostOff_m ? off : 0;
}

}  // namespace

MirrorImage mirror_image(const ObjectSize& size, std::span<const ObjectPoint> points,
                         const RegistrationOptions& options) {
    MirrorImage image;
    const ObjectRoom room = room_of(size);
    SurfacePyramid surface(room.min, room.max);
    surface.add(points);
    std::vector<ObjectPoint> mirrored(points.begin(), points.end());
    const double middle_m = to_metres(to_lattice(middle_plane(size, points, middle_of(points).x)));
    for (ObjectPoint& p : mirrored) p.place.y = 2 * middle_m - p.place.y, p.to_sensor.y = -p.to_sensor.y;
    std::sort(mirrored.begin(), mirrored.end(), comes_before);
    const Registration r = register_points(surface, sample_of(mirrored, 2 * kSample), Pose{}, options);
    image.aligned = r.accepted;
    if (!r.accepted && !r.apart(options)) return image;
    Pose correction = image.aligned ? r.correction : Pose{};
    // What the registration says about the way to the side comes from edges alone, which are sampled thinly
    // on the side that was not seen: it is taken back.
    const Vec3d middle = middle_of(mirrored);
    correction.translation.y -= correction.apply(middle).y - middle.y;
    SurfaceMap seen({room.min, room.max, kSeenCellSteps});
    seen.add(points);
    for (const ObjectPoint& p : moved(mirrored, correction))
        if (!seen.occupied(p.place)) image.points.push_back(p);
    std::sort(image.points.begin(), image.points.end(), comes_before);
    return image;
}

}  // namespace citysplat::objects
