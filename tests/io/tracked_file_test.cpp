#include "io/input/tracked_file.hpp"

#include "core/error.hpp"
#include "io/drive_writer.hpp"
#include "io/input/reading.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using test::write_text;

namespace {

/// A car that drives along x with 10 m/s for two seconds, and one that is parked beside it. The boxes of the
/// parked one jitter by 10 cm.
std::string two_cars(const char* speed = "20") {
    return std::string("time,id,x,y,z,yaw,length,width,height\n") + "0,moving,0,0,0,0,4,2,1.5\n2,moving," +
           speed + ",0,0,0,4,2,1.5\n" +
           "0,parked,10,3,0,0,4,2,1.5\n1,parked,10.1,3,0,0,4,2,1.5\n2,parked,10,3.1,0,0,4,2,1.5\n";
}

PointBatch all_points(const PointFile& file) {
    PointBatch batch;
    REQUIRE(file.block_count() == 1);
    file.read_block(0, batch);
    return batch;
}

}  // namespace

TEST_CASE("what is in the box of something that moves is left out at its own time") {
    const test::TempDir dir;
    write_text(dir / "tracks.csv", two_cars());
    write_text(dir / "cloud.xyz",
               "x y z gps_time\n"
               "10 0 1 1\n"      // in the moving car
               "12.2 0.5 1 1\n"  // in the margin of its box
               "12.4 0.5 1 1\n"  // before it
               "10 0 1 0\n"      // where the car comes later
               "10 0 0.05 1\n"   // the road below it
               "10 3 1 1\n"      // the parked car
               "20 0 1 2.5\n");  // when the track is over
    const auto tracked = io::read_tracked_boxes(dir / "tracks.csv");
    CHECK(tracked->boxes.size() == 1);
    const io::ReadingOpener open;
    const auto file = open(dir / "cloud.xyz", io::with_tracks("", *tracked));
    const PointBatch batch = all_points(*file);
    batch.check();
    CHECK(batch.x == std::vector<double>{12.4, 10, 10, 10, 20});
    CHECK(batch.masked[static_cast<std::size_t>(SensorMask::Reason::box)] == 2);
    CHECK(all_points(*open(dir / "cloud.xyz", "")).size() == 7);
}

TEST_CASE("other tracks make another source") {
    const test::TempDir dir;
    write_text(dir / "tracks.csv", two_cars());
    write_text(dir / "cloud.xyz", "x y z gps_time\n10 0 1 1\n");
    const std::string words = io::with_tracks("", *io::read_tracked_boxes(dir / "tracks.csv"));
    CHECK(io::refreshed_reading(words) == words);
    write_text(dir / "tracks.csv", two_cars("40"));
    const std::string now = io::refreshed_reading(words);
    CHECK(now != words);
    CHECK(all_points(*io::ReadingOpener()(dir / "cloud.xyz", now)).size() == 1);
    CHECK_THROWS_AS(io::ReadingOpener()(dir / "cloud.xyz", words), BusyError);
}

TEST_CASE("a cloud without times is not cut by tracks") {
    const test::TempDir dir;
    write_text(dir / "tracks.csv", two_cars());
    write_text(dir / "cloud.xyz", "x y z\n10 0 1\n");
    const std::string words = io::with_tracks("", *io::read_tracked_boxes(dir / "tracks.csv"));
    CHECK_THROWS_WITH(io::ReadingOpener()(dir / "cloud.xyz", words),
                      Catch::Contains("cloud.xyz: its points have no times") && Catch::Contains("--tracks"));
}
