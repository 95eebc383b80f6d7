#include "sim/traffic/object_shelf.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "sim/drive/scenario.hpp"
#include "sim/memory_frames.hpp"
#include "sim/traffic/traffic_plan.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    FileWriter out(path);
    out.text(text);
    out.finish();
}

const ClassMap& some_classes() {
    static const ClassMap map(
        "few", 1,
        {{10, {"Car", SplatGroup::surface, true, 0}}, {11, {"pedestrian", SplatGroup::surface, true, 0}}});
    return map;
}

const TrafficSpan kEverywhere{0, 100, {{-1e6, -1e6, -1e6}, {1e6, 1e6, 1e6}}, {}};

/// One disc at each corner of a box of 4 × 2 × 1 m.
SplatTile corners() {
    std::vector<Splat> splats;
    for (int i = 0; i < 8; ++i) {
        Splat s{};
        s.x = (i & 1 ? 2 : -2) * 8192, s.y = (i & 2 ? 1 : -1) * 8192, s.z = (i & 4 ? 1 : 0) * 8192;
        s.normal = pack_normal(normalized(Vec3d{1, 1, 0}));
        s.radius = 820;
        s.label = 10;
        splats.push_back(s);
    }
    return SplatTile({0, 0, 0}, splats);
}

/// A bank of two cars, which remembers what was wanted.
class TwoCars final : public ObjectSource {
  public:
    explicit TwoCars(std::vector<ObjectWish>& wishes) : wishes_(wishes) {}
    std::optional<std::string> choose(const ObjectWish& wish) const override {
        wishes_.push_back(wish);
        if (!wish.class_name.empty() && wish.class_name != "Car") return std::nullopt;
        return wish.size.length_m > 5 ? "long" : "short";
    }
    StoredObject load(const std::string& name) const override {
        if (name != "long" && name != "short") throw UsageError("no object is called " + name);
        return {name, "Car", {4, 2, 1}, corners()};
    }
    std::vector<std::string> classes() const override { return {"Car"}; }

  private:
    std::vector<ObjectWish>& wishes_;
};

class Folders final : public StoredThings {
  public:
    FrameSourcePtr frames(const std::filesystem::path& folder) const override {
        opened.push_back(folder);
        test::MemoryFrames::Layout layout;
        layout.objects = {3u << 16 | 10, 3u << 16 | 11};
        return std::make_shared<test::MemoryFrames>(layout);
    }
    ObjectSourcePtr objects(const std::filesystem::path& folder) const override {
        opened.push_back(folder);
        return std::make_shared<TwoCars>(wishes);
    }
    mutable std::vector<std::filesystem::path> opened;
    mutable std::vector<ObjectWish> wishes;
};

const std::string kSensors = "trajectory = \"ego.tum\"\n[[sensor]]\nsensor = \"vlp-16\"\n";

TrafficPlan planned(const test::TempDir& dir, const std::string& toml, const Folders& folders,
                    const TrafficSpan& span = kEverywhere) {
    write(dir / "s.toml", kSensors + toml);
    return plan_traffic(Scenario::load(dir / "s.toml").things, {some_classes(), &folders}, span, {});
}

bool says(const TrafficPlan& plan, const std::string& what) {
    for (const std::string& note : plan.notes)
        if (note.find(what) != std::string::npos) return true;
    return false;
}

}  // namespace

TEST_CASE("objects of a bank are named or chosen by class and size and where they are seen from") {
    const test::TempDir dir;
    write(dir / "tracks.csv",
          "time,id,class,x,y,z,yaw,length,width,height\n1,a,Car,0,0,0,0,4,2,1.5\n2,a,Car,5,0,0,0,4,2,1.5\n"
          "1,b,Car,0,9,0,0,6,2,2\n2,b,Car,1,9,0,0,6,2,2\n"
          "1,c,Pedestrian,0,9,0,0,0.5,0.5,1.8\n2,c,Pedestrian,0,9,0,0,0.5,0.5,1.8\n");
    const Folders folders;
    const Trajectory sensor({{0, {{0, -20, 0}, {}}}, {10, {{0, -20, 0}, {}}}});
    TrafficSpan span = kEverywhere;
    span.ways.push_back({&sensor, 100});
    const TrafficPlan plan = planned(dir, R"(
[[actor]]
object = "bank:cars#long"
place_m = [0, 0, 0]
[[traffic]]
file = "tracks.csv"
objects = { "*" = "bank:cars" }
)",
                                     folders, span);
    REQUIRE(plan.actors.size() == 4);
    CHECK(folders.opened == std::vector<std::filesystem::path>{dir / "cars"});
    CHECK(plan.rows[0].object == "long");
    CHECK(plan.actors[0].name == "bank:cars#long");
    CHECK(plan.rows[1].object == "short");
    CHECK(plan.rows[2].object == "long");
    CHECK(plan.actors[0].shape == plan.actors[2].shape);
    CHECK(std::holds_alternative<SplatTile>(plan.shapes[plan.actors[1].shape].form));
    CHECK(plan.actors[1].label == 10);
    // Nobody walks about as a car.
    CHECK(plan.rows[3].object == "box 0.5 × 0.5 × 1.8");
    CHECK(says(plan, "no object of the class \"Pedestrian\""));
    REQUIRE(folders.wishes.size() >= 2);
    const ObjectWish& a = folders.wishes[0];
    CHECK(a.class_name == "Car");
    CHECK(a.size.length_m == 4);
    CHECK(a.who == "a");
    // From the right, and ever more from behind: 90° to 104° clockwise.
    REQUIRE(a.azimuths_rad.size() == 2);
    CHECK(a.azimuths_rad[0] == Approx(-100 * exact::kRadPerDegree));
    CHECK(a.azimuths_rad[1] == Approx(-90 * exact::kRadPerDegree));
    // The tracks are as high as 1.5 and 2 m, the object 1 m.
    CHECK(says(plan, "2 tracks have another size"));
    CHECK(says(plan, "\"a\", 4 × 2 × 1.5 m, looks like \"short\", 4 × 2 × 1 m"));
    CHECK_THROWS_WITH(
        planned(dir, "[[actor]]\nobject = \"bank:cars\"\nclass = \"pedestrian\"\nplace_m = [0, 0, 0]\n",
                folders),
        Catch::Contains("no object of the class \"pedestrian\"") && Catch::Contains("there are Car"));
    CHECK_THROWS_WITH(planned(dir, "[[actor]]\nobject = \"bank:cars#bus\"\nplace_m = [0, 0, 0]\n", folders),
                      Catch::Contains("bus"));
    CHECK_THROWS_WITH(planned(dir, "[[object]]\nname = \"bank:x\"\nshape = \"cube\"\nsize_m = 1\n", folders),
                      Catch::Contains("begins with \"bank:\""));
}

TEST_CASE("objects are stretched to the boxes of their tracks when the scenario asks for it") {
    const test::TempDir dir;
    write(dir / "tracks.csv",
          "time,id,class,x,y,z,yaw,length,width,height\n1,a,Car,0,0,0,0,6,2,1.5\n2,a,Car,5,0,0,0,6,2,1.5\n"
          "1,b,Car,0,9,0,0,6.001,2,1.5\n2,b,Car,1,9,0,0,6.001,2,1.5\n1,c,Car,0,0,0,0,2,1,1\n");
    const Folders folders;
    const auto with = [&](const std::string& object, const std::string& more) {
        return planned(
            dir,
            more + "[[traffic]]\nfile = \"tracks.csv\"\nfit = true\nobjects = { Car = \"" + object + "\" }\n",
            folders);
    };
    const auto box_of = [](const TrafficPlan& plan, std::size_t actor) {
        Box3d box = kEmptyBox;
        const Shape& shape = plan.shapes[plan.actors[actor].shape];
        if (const auto* mesh = std::get_if<TriangleMesh>(&shape.form)) return mesh->box();
        const SplatTile& tile = std::get<SplatTile>(shape.form);
        for (std::size_t i = 0; i < tile.size(); ++i) box.grow(vec_cast<double>(tile.disc(i).centre));
        return box;
    };
    for (const TrafficPlan& plan :
         {with("block", "[[object]]\nname = \"block\"\nshape = \"box\"\nsize_m = [4, 2, 1]\n"),
          with("bank:cars#short", "")}) {
        REQUIRE(plan.actors.size() == 3);
        CHECK_FALSE(says(plan, "another size"));
        const Box3d a = box_of(plan, 0), c = box_of(plan, 2);
        CHECK(a.min.x == Approx(-3).margin(1e-3));
        CHECK(a.max.y == Approx(1).margin(1e-3));
        CHECK(a.max.z == Approx(1.5).margin(1e-3));
        CHECK(c.max.x == Approx(1).margin(1e-3));
        CHECK(c.min.y == Approx(-0.5).margin(1e-3));
        CHECK(plan.actors[0].shape == plan.actors[1].shape);  // a millimetre is no other shape
        CHECK(plan.rows[0].size.length_m == 6);
    }
    // A plane that leans by 45° leans less on a longer object, and its discs grow as much as it does.
    const TrafficPlan plan = with("bank:cars#short", "");
    const SplatTile& tile = std::get<SplatTile>(plan.shapes[plan.actors[0].shape].form);
    const Vec3f n = tile.disc(0).normal;
    CHECK(n.x / n.y == Approx(1 / 1.5f).margin(1e-3));
    CHECK(tile.disc(0).radius == Approx(1.5f * 820 / 8192).margin(2e-4));
}

TEST_CASE("recorded frames of a scenario have instances behind those of everybody else") {
    const test::TempDir dir;
    const Folders folders;
    const TrafficPlan plan = planned(dir, R"(
[[object]]
name = "block"
shape = "cube"
size_m = 1
[[actor]]
object = "block"
place_m = [0, 0, 0]
[[snapshots]]
folder = "city"
time_offset_s = 3
repeat_s = 20
[[snapshots]]
folder = "other"
)",
                                     folders);
    CHECK(folders.opened == std::vector<std::filesystem::path>{dir / "city", dir / "other"});
    REQUIRE(plan.frames.size() == 2);
    CHECK(plan.frames[0].time_offset_s == 3);
    CHECK(plan.frames[0].repeat_s == 20);
    CHECK(plan.frames[0].rest == 2);
    CHECK(plan.frames[0].instances.at(3u << 16 | 10) == 3);
    CHECK(plan.frames[0].instances.at(3u << 16 | 11) == 4);
    CHECK(plan.frames[1].rest == 5);
    REQUIRE(plan.frame_rows.size() == 6);
    CHECK(plan.frame_rows[1].class_name == "Car");
    CHECK(plan.frame_rows[1].object == "city");
    CHECK_THROWS_WITH(planned(dir, "[[snapshots]]\nrepeat_s = 0.5\nfolder = \"city\"\n", folders),
                      Catch::Contains("twice"));
    CHECK_THROWS_WITH(planned(dir, "[[snapshots]]\nrepeat_s = 0\nfolder = \"city\"\n", folders),
                      Catch::Contains("repeat_s"));
}
