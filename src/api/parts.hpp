#pragma once

#include "citysplat/simulation.hpp"
#include "core/error.hpp"
#include "model/trajectory.hpp"
#include "sim/sensor/sensor.hpp"
#include "tiling/store/city_reader.hpp"

/// What stands behind the public headers.
namespace citysplat::api {
inline namespace v1 {

struct City::Parts {
    explicit Parts(const std::filesystem::path& directory, std::optional<std::int64_t> generation)
        : reader(directory, generation) {}
    tiling::CityReader reader;
    std::vector<TileInfo> tiles;
};

struct Trajectory::Parts {
    citysplat::Trajectory path;
};

struct Sensor::Parts {
    sim::Sensor sensor;
};

inline Vec3 to_api(Vec3d v) { return {v.x, v.y, v.z}; }
inline Vec3f to_api(citysplat::Vec3f v) { return {v.x, v.y, v.z}; }
inline Vec3d from_api(const Vec3& v) { return {v.x, v.y, v.z}; }
inline Pose to_api(const citysplat::Pose& p) {
    return {to_api(p.translation), p.rotation.x, p.rotation.y, p.rotation.z, p.rotation.w};
}
inline citysplat::Pose from_api(const Pose& p) { return {from_api(p.position), {p.qx, p.qy, p.qz, p.qw}}; }

/// Does the work and turns what it throws into what the public headers promise.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
    try {
        return work();
    } catch (const citysplat::Error& e) {
        throw Error(static_cast<int>(e.kind()), e.what());
    } catch (const std::bad_alloc&) {
        throw Error(static_cast<int>(ErrorKind::io), "out of memory");
    } catch (const std::filesystem::filesystem_error& e) {
        throw Error(static_cast<int>(ErrorKind::io), e.what());
    }
}

}  // namespace v1
}  // namespace citysplat::api
