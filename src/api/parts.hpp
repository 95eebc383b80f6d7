#pragma once

#include "citysplat/session.hpp"
#include "core/error.hpp"
#include "model/trajectory.hpp"
#include "objects/stored/stored_folders.hpp"
#include "sim/drive/scenario_session.hpp"
#include "sim/sensor/sensor.hpp"
#include "tiling/store/city_reader.hpp"

/// What stands behind the public headers.
namespace citysplat::api {
inline namespace v1 {

struct City::Parts {
    explicit Parts(const std::filesystem::path& where, std::optional<std::int64_t> generation)
        : directory(where), reader(where, generation) {}
    std::filesystem::path directory;
    tiling::CityReader reader;
    std::vector<TileInfo> tiles;
};

struct Trajectory::Parts {
    citysplat::Trajectory path;
};

struct Sensor::Parts {
    sim::Sensor sensor;
};

struct Session::Parts {
    Parts(const City& where, sim::Scenario scenario, const SessionOptions& options);

    City city;
    std::unique_ptr<trace::Tracer> tracer;
    objects::StoredFolders folders;
    CancelToken cancel;
    sim::ScenarioSession session;
};

inline Vec3 to_api(Vec3d v) { return {v.x, v.y, v.z}; }
inline Vec3f to_api(citysplat::Vec3f v) { return {v.x, v.y, v.z}; }
inline Vec3d from_api(const Vec3& v) { return {v.x, v.y, v.z}; }
inline Pose to_api(const citysplat::Pose& p) {
    return {to_api(p.translation), p.rotation.x, p.rotation.y, p.rotation.z, p.rotation.w};
}
inline citysplat::Pose from_api(const Pose& p) { return {from_api(p.position), {p.qx, p.qy, p.qz, p.qw}}; }

/// A ray as the tracer has it, and what it met as the public headers do.
inline trace::Ray from_api(const Ray& r) {
    return {from_api(r.origin), {r.direction.x, r.direction.y, r.direction.z}, r.min_range_m, r.max_range_m};
}
Hit to_api(const trace::Hit& hit, const trace::Ray& ray);
/// Puts the scan into `scan`, whose memory is used again.
void to_api(const sim::Scan& from, Scan& scan);
/// For a session in this city.
sim::Scenario load_scenario(const City& city, const std::filesystem::path& file);
/// One sensor of a run.
sim::SensorRun run_of(const Sensor& sensor, const SimulationOptions& options);

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
