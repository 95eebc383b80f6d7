#include "view/camera.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;

TEST_CASE("a camera sees its target in the middle and projects what its rays hit") {
    Camera camera;
    camera.width = 640;
    camera.height = 480;
    const Vec3d eye{651000, 6861000, 40}, target{651030, 6860980, 35};
    camera.world_from_camera = Camera::look_at(eye, target);
    const auto middle = camera.project(target);
    REQUIRE(middle);
    CHECK(middle->px == Approx(320).margin(1e-6));
    CHECK(middle->py == Approx(240).margin(1e-6));
    for (const double px : {0.0, 100.5, 639.5}) {
        const Vec3d seen = eye + 17.0 * camera.direction(px, 77.25);
        const auto back = camera.project(seen);
        REQUIRE(back);
        CHECK(back->px == Approx(px).margin(1e-5));
        CHECK(back->py == Approx(77.25).margin(1e-5));
    }
    CHECK(camera.direction(320, 0).z > camera.direction(320, 480).z);  // rows go down
    CHECK_FALSE(camera.project(eye - (target - eye)));
}
