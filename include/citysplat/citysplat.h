#ifndef CITYSPLAT_CITYSPLAT_H
#define CITYSPLAT_CITYSPLAT_H

/* citysplat for C, and for everything that can call C: a city and a session in it (citysplat/session.hpp says
 * more). Lengths are metres, times seconds, coordinates those of the city.
 *
 * Functions that can fail return 0, or the exit code of the program (docs/cli.md); citysplat_last_error() then
 * says what, where and the way out. What they would have filled is left as it was. A session is used by one
 * thread at a time; everything else may be shared. Pointers may be NULL only where that is said. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct citysplat_city citysplat_city;
typedef struct citysplat_session citysplat_session;

/* A rigid transform: rotation by a unit quaternion (x, y, z, w), then translation. */
typedef struct citysplat_pose {
    double position[3];
    double rotation[4];
} citysplat_pose;

typedef struct citysplat_stamped_pose {
    double time_s;
    citysplat_pose pose;
} citysplat_stamped_pose;

enum { CITYSPLAT_NONE = 0, CITYSPLAT_HIT = 1, CITYSPLAT_DROPPED = 2, CITYSPLAT_MISSING = 3 };

typedef struct citysplat_return {
    double position[3]; /* world */
    uint64_t splat;     /* id; 0: none */
    float range_m;
    float time_s; /* since the scan began */
    float normal[3];
    float cosine; /* of the incidence angle */
    uint16_t beam, label, intensity;
    uint16_t instance; /* of what is not the city; 0: the city */
    uint8_t hits;      /* splats that contributed */
    uint8_t status;    /* CITYSPLAT_HIT, ... */
    uint8_t reserved[6];
} citysplat_return;

/* Every ray, in firing order; of a sensor that reports two returns of a pulse, then the second ones. */
typedef struct citysplat_scan {
    uint64_t index;
    double time_s;
    citysplat_pose sensor; /* in the world, when the scan begins */
    const citysplat_return* returns;
    size_t count;
} citysplat_scan;

typedef struct citysplat_ray {
    double origin[3];
    float direction[3]; /* unit length */
    float min_range_m, max_range_m;
} citysplat_ray;

typedef struct citysplat_hit {
    double range_m; /* below 0: nothing was met */
    double position[3];
    uint64_t splat;
    float normal[3]; /* towards the ray's origin */
    uint16_t label, intensity, instance;
    uint16_t reserved[3];
} citysplat_hit;

typedef struct citysplat_clearance {
    double distance_m; /* the limit when nothing is nearer; 0: it touches */
    double position[3];
    int found;   /* something is nearer than the limit */
    int touches; /* 1: it does */
    uint16_t label;
    uint16_t reserved[3];
} citysplat_clearance;

/* What a session is opened with: begin with citysplat_default_options(). */
typedef struct citysplat_options {
    uint64_t memory_bytes; /* for tiles and shapes; never changes a result */
    double history_s;      /* so long before the latest scan places are known */
    double max_ray_m;      /* longest ray that will be cast */
    double from_s, to_s;   /* of the session, for obstacles that move by themselves; may be infinite */
    citysplat_pose mount;  /* of the one sensor of citysplat_open_sensor() on its vehicle */
    uint64_t seed;
    uint32_t hits_per_return;
    int32_t noise; /* 0: none */
} citysplat_options;

const char* citysplat_version(void);
/* Of the last call of this thread that failed; valid until the next one. Never NULL. */
const char* citysplat_last_error(void);

/* A generation of a city, 0: the latest. It stays as it is until it is closed. */
int citysplat_open_city(const char* directory, int64_t generation, citysplat_city** city);
void citysplat_close_city(citysplat_city* city); /* may be NULL */
int64_t citysplat_generation(const citysplat_city* city);
uint64_t citysplat_splats(const citysplat_city* city);
/* 32 digits and a zero. */
void citysplat_city_digest(const citysplat_city* city, char digest[33]);

void citysplat_default_options(citysplat_options* options);
/* A scenario file. `options` may be NULL. The city may be closed before the session. */
int citysplat_open_session(const citysplat_city* city, const char* scenario, const citysplat_options* options,
                           citysplat_session** session);
/* One sensor, by name or file, on the way that is called "trajectory". */
int citysplat_open_sensor(const citysplat_city* city, const char* sensor, const citysplat_options* options,
                          citysplat_session** session);
void citysplat_close_session(citysplat_session* session); /* may be NULL */
size_t citysplat_sensors(const citysplat_session* session);
/* NULL when there is no such sensor; valid as long as the session. */
const char* citysplat_sensor_name(const citysplat_session* session, size_t sensor);

/* Where a vehicle or an object is, as it becomes known. */
int citysplat_advance(citysplat_session* session, const char* name, const citysplat_stamped_pose* poses,
                      size_t count);
int citysplat_leave(citysplat_session* session, const char* name, double time_s);

/* The next scan of a sensor. Its returns are valid until the next call with this session. */
int citysplat_next_scan(citysplat_session* session, size_t sensor, double time_s, citysplat_scan* scan);
/* What each of `count` rays meets first at this time. */
int citysplat_cast(citysplat_session* session, const citysplat_ray* rays, size_t count, double time_s,
                   citysplat_hit* hits);

/* A box in the frame of a body, where it is, which vehicle it is (NULL: none) and how far things matter. */
typedef struct citysplat_body {
    double min[3], max[3];
    citysplat_pose pose;
    double time_s, limit_m;
    const char* vehicle;
} citysplat_body;
int citysplat_near(citysplat_session* session, const citysplat_body* body, citysplat_clearance* clearance);

/* Of all scans of a sensor so far: that of `citysplat simulate`. */
int citysplat_scan_digest(const citysplat_session* session, size_t sensor, char digest[33]);

#ifdef __cplusplus
}
#endif
#endif
