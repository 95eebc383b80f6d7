#include <citysplat/session.hpp>
#include <cmath>
#include <cstdio>

using namespace citysplat::api;

/// What does somebody see who stands in the middle of the city? Then a sensor drives through it.
int main(int argc, char** argv) try {
    if (argc != 3) throw Error(2, "usage: consumer CITY TRAJECTORY");
    const City city(argv[1]);
    const Trajectory drive = Trajectory::read(argv[2]);
    std::printf("citysplat %s: %llu splats in %zu tiles\n", version(),
                static_cast<unsigned long long>(city.splats()), city.tiles().size());

    const Vec3 eye = drive.at((drive.begin_s() + drive.end_s()) / 2)->position;
    std::vector<Ray> rays;
    for (int degree = 0; degree < 360; degree += 10) {
        const double a = degree * 3.14159265358979 / 180;
        rays.push_back({eye, {static_cast<float>(std::cos(a)), static_cast<float>(std::sin(a)), 0}});
    }
    std::size_t met = 0;
    for (const Hit& hit : Caster(city).cast(rays)) {
        if (!hit.found) continue;
        ++met;
        std::printf("%8.2f m  %s\n", hit.range_m, city.class_name(hit.label).c_str());
    }

    SimulationOptions options;
    options.to_s = drive.begin_s() + 0.5;
    const SimulationResult result =
        simulate(city, Sensor::load("vlp-16"), drive, options, [](const Scan& scan) {
            std::printf("scan %llu: %zu rays\n", static_cast<unsigned long long>(scan.index),
                        scan.returns.size());
            return true;
        });
    std::printf("%llu returns\n", static_cast<unsigned long long>(result.hits));

    // The same without knowing the way: a planner would decide here where to go next.
    Session session(city, Sensor::load("vlp-16"), options);
    std::size_t returns = 0;
    for (int k = 0; k < 5; ++k) {
        const double t = drive.begin_s() + k * 0.1;
        std::vector<Trajectory::Stamped> poses{{t + 0.1, *drive.at(t + 0.1)}};
        if (k == 0) poses.insert(poses.begin(), {t, *drive.at(t)});
        session.advance("trajectory", poses);
        for (const Return& r : session.scan(0, t).returns) returns += r.status == Status::hit;
        const ClearanceQuestion car{{{-2, -1, -0.5}, {2, 1, 0.5}}, poses.back().pose, t + 0.1};
        if (session.clearance(car).touches) std::printf("something is in the way at %.1f s\n", t + 0.1);
    }
    return met > 0 && result.hits > 0 && returns > 0 ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.code();
}
