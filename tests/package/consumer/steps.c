#include <citysplat/citysplat.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, citysplat_last_error());
    return 1;
}

/* A sensor rises through a city, 5 m/s, told where it is ten times a second. steps CITY X Y Z */
int main(int argc, char** argv) {
    citysplat_city* city = NULL;
    citysplat_session* session = NULL;
    citysplat_stamped_pose at = {0, {{0, 0, 0}, {0, 0, 0, 1}}};
    char digest[33];
    size_t hits = 0;
    int k;
    if (argc != 5) return 2;
    for (k = 0; k < 3; ++k) sscanf(argv[k + 2], "%lf", &at.pose.position[k]);
    if (citysplat_open_city(argv[1], 0, &city)) return failed("city");
    if (citysplat_open_sensor(city, "vlp-16", NULL, &session)) return failed("sensor");
    citysplat_close_city(city); /* the session keeps what it needs */
    if (citysplat_open_sensor(NULL, "vlp-16", NULL, &session) != 2) return failed("NULL was taken");
    if (citysplat_advance(session, "trajectory", &at, 1)) return failed("advance");
    for (k = 0; k < 5; ++k) {
        citysplat_scan scan;
        citysplat_body body = {{-0.3, -0.3, -0.2}, {0.3, 0.3, 0.2}, at.pose, at.time_s, 2.0, NULL};
        citysplat_clearance near;
        size_t i;
        if (citysplat_near(session, &body, &near)) return failed("clearance");
        at.time_s = 0.1 * (k + 1);
        at.pose.position[2] += 0.5;
        if (citysplat_advance(session, "trajectory", &at, 1)) return failed("advance");
        if (citysplat_next_scan(session, 0, 0.1 * k, &scan)) return failed("scan");
        for (i = 0; i < scan.count; ++i) hits += scan.returns[i].status == CITYSPLAT_HIT;
        printf("%.1f s: %s within 2 m, %u rays\n", scan.time_s, near.found ? "something" : "nothing",
               (unsigned)scan.count);
    }
    {
        citysplat_ray down = {{0, 0, 0}, {0, 0, -1}, 0, 100};
        citysplat_hit hit;
        memcpy(down.origin, at.pose.position, sizeof down.origin);
        if (citysplat_cast(session, &down, 1, at.time_s, &hit)) return failed("cast");
        printf("%.2f m above the ground\n", hit.range_m);
    }
    if (citysplat_scan_digest(session, 0, digest)) return failed("digest");
    printf("%s: %u returns, digest %s\n", citysplat_sensor_name(session, 0), (unsigned)hits, digest);
    citysplat_close_session(session);
    return hits > 0 ? 0 : 1;
}
