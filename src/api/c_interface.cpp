#include "citysplat/citysplat.h"
#include "citysplat/session.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>

namespace api = citysplat::api;

struct citysplat_city {
    api::City city;
};

struct citysplat_session {
    api::Session session;
    std::vector<std::string> sensors = session.sensors();
    std::vector<citysplat_return> returns{};  ///< of the last scan
};

namespace {

/// Of a failure that has no code of its own.
constexpr int kFailed = 74;

/// Text of a call that failed, for the thread that called.
thread_local std::string last_error;

int fail(int code, const char* message) noexcept {
    try {
        last_error = message;
    } catch (...) {
        last_error.clear();
    }
    return code != 0 ? code : kFailed;
}

/// An argument that may not be NULL.
struct Needed {
    const void* pointer;
    const char* name;
    bool needed = true;
};

/// Does the work if all that it needs is there; no exception leaves it.
template <class Work>
int guarded(std::initializer_list<Needed> all, const Work& work) noexcept {
    try {
        for (const Needed& one : all)
            if (one.needed && !one.pointer) throw api::Error(2, std::string(one.name) + " is NULL");
        work();
        return 0;
    } catch (const api::Error& e) {
        return fail(e.code(), e.what());
    } catch (const std::bad_alloc&) {
        return fail(kFailed, "out of memory");
    } catch (const std::exception& e) {
        return fail(kFailed, e.what());
    } catch (...) {
        return fail(kFailed, "something was thrown that is no exception");
    }
}

api::Vec3 vec(const double (&v)[3]) { return {v[0], v[1], v[2]}; }
void put(const api::Vec3& from, double (&to)[3]) { to[0] = from.x, to[1] = from.y, to[2] = from.z; }
void put(const api::Vec3f& from, float (&to)[3]) { to[0] = from.x, to[1] = from.y, to[2] = from.z; }

api::Pose pose(const citysplat_pose& p) {
    return {vec(p.position), p.rotation[0], p.rotation[1], p.rotation[2], p.rotation[3]};
}
citysplat_pose pose(const api::Pose& p) {
    return {{p.position.x, p.position.y, p.position.z}, {p.qx, p.qy, p.qz, p.qw}};
}

void put_digest(const std::string& hex, char* digest) {
    std::memset(digest, 0, 33);
    std::memcpy(digest, hex.data(), std::min<std::size_t>(hex.size(), 32));
}

struct Options {
    api::SessionOptions session;
    api::SimulationOptions sensor;
};
Options from(const citysplat_options* given) {
    Options options;
    if (!given) return options;
    options.session = {given->memory_bytes, given->history_s, given->max_ray_m, given->from_s, given->to_s};
    options.sensor.mount = pose(given->mount);
    options.sensor.seed = given->seed;
    options.sensor.hits_per_return = given->hits_per_return;
    options.sensor.noise = given->noise != 0;
    return options;
}

citysplat_return plain(const api::Return& r) {
    citysplat_return out{};
    put(r.position, out.position);
    put(r.normal, out.normal);
    out.splat = r.splat;
    out.range_m = r.range_m;
    out.time_s = r.time_s;
    out.cosine = r.cosine;
    out.beam = r.beam;
    out.label = r.label;
    out.intensity = r.intensity;
    out.instance = r.instance;
    out.hits = r.hits;
    out.status = static_cast<std::uint8_t>(r.status);
    return out;
}

citysplat_hit plain(const api::Hit& h) {
    citysplat_hit out{};
    out.range_m = h.found ? h.range_m : -1;
    put(h.position, out.position);
    put(h.normal, out.normal);
    out.splat = h.splat;
    out.label = h.label;
    out.intensity = h.intensity;
    out.instance = h.instance;
    return out;
}

}  // namespace

const char* citysplat_version(void) { return api::version(); }
const char* citysplat_last_error(void) { return last_error.c_str(); }

int citysplat_open_city(const char* directory, int64_t generation, citysplat_city** city) {
    return guarded({{directory, "directory"}, {city, "city"}}, [&] {
        *city = new citysplat_city{
            api::City(directory, generation == 0 ? std::nullopt : std::optional<std::int64_t>(generation))};
    });
}
void citysplat_close_city(citysplat_city* city) { delete city; }
int64_t citysplat_generation(const citysplat_city* city) { return city->city.generation(); }
uint64_t citysplat_splats(const citysplat_city* city) { return city->city.splats(); }
void citysplat_city_digest(const citysplat_city* city, char digest[33]) {
    guarded({{city, "city"}, {digest, "digest"}}, [&] { put_digest(city->city.digest(), digest); });
}

void citysplat_default_options(citysplat_options* options) {
    const Options usual = from(nullptr);
    *options = {usual.session.memory_bytes, usual.session.history_s,      usual.session.max_ray_m,
                usual.session.from_s,       usual.session.to_s,           pose(usual.sensor.mount),
                usual.sensor.seed,          usual.sensor.hits_per_return, usual.sensor.noise};
}

int citysplat_open_session(const citysplat_city* city, const char* scenario, const citysplat_options* options,
                           citysplat_session** session) {
    return guarded({{city, "city"}, {scenario, "scenario"}, {session, "session"}}, [&] {
        *session = new citysplat_session{
            api::Session(city->city, std::filesystem::path(scenario), from(options).session)};
    });
}
int citysplat_open_sensor(const citysplat_city* city, const char* sensor, const citysplat_options* options,
                          citysplat_session** session) {
    return guarded({{city, "city"}, {sensor, "sensor"}, {session, "session"}}, [&] {
        const Options how = from(options);
        *session = new citysplat_session{
            api::Session(city->city, api::Sensor::load(sensor), how.sensor, how.session)};
    });
}
void citysplat_close_session(citysplat_session* session) { delete session; }
size_t citysplat_sensors(const citysplat_session* session) { return session->sensors.size(); }
const char* citysplat_sensor_name(const citysplat_session* session, size_t sensor) {
    return sensor < session->sensors.size() ? session->sensors[sensor].c_str() : nullptr;
}

int citysplat_advance(citysplat_session* session, const char* name, const citysplat_stamped_pose* poses,
                      size_t count) {
    return guarded({{session, "session"}, {name, "name"}, {poses, "poses", count > 0}}, [&] {
        std::vector<api::Trajectory::Stamped> all;
        all.reserve(count);
        for (size_t i = 0; i < count; ++i) all.push_back({poses[i].time_s, pose(poses[i].pose)});
        session->session.advance(name, all);
    });
}
int citysplat_leave(citysplat_session* session, const char* name, double time_s) {
    return guarded({{session, "session"}, {name, "name"}}, [&] { session->session.leave(name, time_s); });
}

int citysplat_next_scan(citysplat_session* session, size_t sensor, double time_s, citysplat_scan* scan) {
    return guarded({{session, "session"}, {scan, "scan"}}, [&] {
        const api::Scan made = session->session.scan(sensor, time_s);
        session->returns.resize(made.returns.size());
        for (std::size_t i = 0; i < made.returns.size(); ++i) session->returns[i] = plain(made.returns[i]);
        *scan = {made.index, made.time_s, pose(made.sensor), session->returns.data(),
                 session->returns.size()};
    });
}

int citysplat_cast(citysplat_session* session, const citysplat_ray* rays, size_t count, double time_s,
                   citysplat_hit* hits) {
    return guarded({{session, "session"}, {rays, "rays", count > 0}, {hits, "hits", count > 0}}, [&] {
        if (count == 0) return;
        std::vector<api::Ray> inner;
        inner.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            const citysplat_ray& r = rays[i];
            inner.push_back({vec(r.origin),
                             {r.direction[0], r.direction[1], r.direction[2]},
                             r.min_range_m,
                             r.max_range_m});
        }
        const std::vector<api::Hit> found = session->session.cast(inner, time_s);
        for (size_t i = 0; i < count; ++i) hits[i] = plain(found[i]);
    });
}

int citysplat_near(citysplat_session* session, const citysplat_body* body, citysplat_clearance* clearance) {
    return guarded({{session, "session"}, {body, "body"}, {clearance, "clearance"}}, [&] {
        const api::Clearance near = session->session.clearance({{vec(body->min), vec(body->max)},
                                                                pose(body->pose),
                                                                body->time_s,
                                                                body->vehicle ? body->vehicle : "",
                                                                body->limit_m});
        *clearance = {near.distance_m, {}, near.found, near.touches, near.label, {}};
        put(near.position, clearance->position);
    });
}

int citysplat_scan_digest(const citysplat_session* session, size_t sensor, char digest[33]) {
    return guarded({{session, "session"}, {digest, "digest"}},
                   [&] { put_digest(session->session.result(sensor).digest, digest); });
}
