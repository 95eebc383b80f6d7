#include "core/error.hpp"
#include "core/file.hpp"
#include "core/math/math_hd.hpp"
#include "io/bytes_le.hpp"
#include "io/crs/map_projection.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <cmath>

namespace citysplat::io {

namespace {

/// Zones are six degrees wide, and stretched to some fifteen in places.
constexpr double kFarFromZone_rad = 20 * exact::kRadPerDegree;

}  // namespace

Quaternion from_heading(double heading_rad, double pitch_rad, double roll_rad) {
    return from_yaw_pitch_roll(exact::kPi / 2 - heading_rad, -pitch_rad, roll_rad);
}

/// Applanix SBET: 17 little-endian doubles a record: time, latitude, longitude, altitude, three velocities,
/// roll, pitch, platform heading, wander angle, three accelerations, three angular rates; radians and metres.
std::vector<StampedPose> read_sbet_poses(const std::filesystem::path& path,
                                         const TrajectoryOptions& options) {
    const File file(path, File::Mode::read);
    const std::uint64_t size = file.size();
    if (size == 0 || size % kSbetRecordBytes != 0)
        throw InputError(path.string() + ": " + std::to_string(size) +
                         " bytes are not a whole number of SBET records of " +
                         std::to_string(kSbetRecordBytes) + " bytes");
    if (options.epsg == 0)
        throw UsageError(path.string() +
                         ": SBET positions are latitudes and longitudes; say which projected system they "
                         "should become, e.g. --trajectory-epsg 2154");
    const MapProjection projection(options.epsg);
    const std::vector<std::byte> bytes = read_file(path);
    std::vector<StampedPose> poses;
    poses.reserve(static_cast<std::size_t>(size / kSbetRecordBytes));
    for (std::size_t at = 0; at < bytes.size(); at += kSbetRecordBytes) {
        double v[17];
        std::memcpy(v, bytes.data() + at, sizeof v);
        const auto fail = [&](const char* field, double value) {
            throw InputError(path.string() + ": record " + std::to_string(at / kSbetRecordBytes) + ": " +
                             field + " " + std::to_string(value) + " is impossible; is this an SBET file?");
        };
        if (!(std::fabs(v[1]) < exact::kPi / 2)) fail("latitude", v[1]);
        if (!(std::fabs(v[2]) <= exact::kPi + 1e-9)) fail("longitude", v[2]);
        if (!(std::fabs(v[3]) < 1e5)) fail("altitude", v[3]);
        if (!(std::fabs(v[7]) <= 7)) fail("roll", v[7]);
        if (!(std::fabs(v[8]) <= 7)) fail("pitch", v[8]);
        if (!(std::fabs(v[9]) <= 7)) fail("heading", v[9]);
        if (!(std::fabs(v[10]) <= 7)) fail("wander angle", v[10]);
        if (std::fabs(v[2] - projection.central_longitude_rad()) > kFarFromZone_rad)
            throw InputError(path.string() + ": record " + std::to_string(at / kSbetRecordBytes) +
                             ": longitude " + std::to_string(v[2] / exact::kRadPerDegree) +
                             "° is far from EPSG:" + std::to_string(options.epsg) + ", whose middle is " +
                             std::to_string(projection.central_longitude_rad() / exact::kRadPerDegree) +
                             "°; is --trajectory-epsg right?");
        const auto plane = projection.project(v[1], v[2]);
        const double heading = v[9] - v[10] + projection.convergence_rad(v[1], v[2]);
        poses.push_back({v[0], {{plane.east_m, plane.north_m, v[3]}, from_heading(heading, v[8], v[7])}});
    }
    return poses;
}

}  // namespace citysplat::io
