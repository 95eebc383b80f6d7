#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/tracks/frame_poses.hpp"
#include "io/tracks/track_formats.hpp"

#include <cmath>

/// label_02 of the KITTI tracking benchmark: frame, id, type, truncated, occluded, alpha, four numbers of the
/// box in the picture, height, width, length, and x, y, z of the middle of the bottom with the angle around
/// the downward axis, in the rectified frame of camera 0 (x right, y down, z forward).
namespace citysplat::io {

namespace {

/// Rectified camera from Velodyne.
Pose camera_from_velo(const TrackRequest& request) {
    if (request.options.calibration.empty())
        throw UsageError(request.path.string() +
                         ": its boxes are in the frame of a camera; \"calibration\" must name the file with "
                         "R_rect and Tr_velo_cam");
    const auto found = read_kitti_calibration(request.options.calibration);
    const auto any_of = [&](std::initializer_list<const char*> names) -> const Pose* {
        for (const char* name : names)
            if (const auto at = found.find(name); at != found.end()) return &at->second;
        return nullptr;
    };
    const Pose* rectified = any_of({"R_rect", "R0_rect", "R_rect_00"});
    const Pose* camera = any_of({"Tr_velo_cam", "Tr_velo_to_cam", "Tr"});
    if (!rectified || !camera)
        throw InputError(request.options.calibration.string() + ": no line " +
                         (rectified ? "Tr_velo_cam" : "R_rect"));
    return *rectified * *camera;
}

/// In the camera's frame: forward (cos, 0, −sin), left (sin, 0, cos), up (0, −1, 0).
Pose camera_from_object(const double (&v)[4]) {
    const auto a = exact::sin_cos(v[3]);
    return {{v[0], v[1], v[2]}, from_rotation_matrix({a.cos, a.sin, 0, 0, 0, -1, -a.sin, a.cos, 0})};
}

}  // namespace

void read_kitti_tracking(const TrackRequest& request) {
    request.boxes.set_record_kind("line");
    const std::string text = read_text_file(request.path);
    const Pose velo_from_camera = inverse(camera_from_velo(request));
    const FramePoses frames(request.path, request.options, request.cancel);
    for (const Line& line : Lines(text)) {
        request.cancel.check();
        const auto words = words_of(line.text);
        if (words.empty()) continue;
        const std::string where = request.path.string() + ": line " + std::to_string(line.number);
        if (words.size() != 17 && words.size() != 18)
            throw InputError(where + ": " + std::to_string(words.size()) +
                             " columns; expected 17, or 18 with a score");
        const auto number = [&](std::size_t column) {
            const auto value = parse_number(words[column]);
            if (!value || !std::isfinite(*value))
                throw InputError(where + ": column " + std::to_string(column + 1) + ": \"" +
                                 printable(words[column].substr(0, 40)) + "\" is not a number");
            return *value;
        };
        const auto frame = parse_whole<std::uint64_t>(words[0]);
        const auto id = parse_whole<std::int64_t>(words[1]);
        if (!frame || !id) throw InputError(where + ": the frame and the id must be whole numbers");
        if (words[2] == "DontCare" || *id < 0) continue;
        const StampedPose& sensor = frames.at(*frame, where);
        const double place[4]{number(13), number(14), number(15), number(16)};
        if (!(std::fabs(place[3]) <= 2 * exact::kPi + 0.01))
            throw InputError(where + ": rotation_y is " + std::string(words[16].substr(0, 40)) +
                             "; expected radians, at most a turn");
        const Pose pose = sensor.world_from_body * velo_from_camera * camera_from_object(place);
        request.boxes.add({words[1],
                           {},
                           words[2],
                           {},
                           {number(12), number(11), number(10)},
                           {sensor.time_s, pose},
                           line.number});
    }
}

}  // namespace citysplat::io
