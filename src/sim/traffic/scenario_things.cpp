#include "sim/traffic/scenario_things.hpp"

#include "core/math/math_hd.hpp"
#include "core/toml_section.hpp"

#include <set>

namespace citysplat::sim {

namespace {

namespace fs = std::filesystem;

constexpr NumberRange kReflectance{0, 1}, kScale{1e-6, 1e6}, kExtent_m{0.001, 1000, "m"},
    kSpeed_m_s{0, 10'000, "m/s"};

template <class Enum, std::size_t N>
Enum choice(Section& s, const char* key, const Words<Enum, N>& words, Enum fallback) {
    const std::string word = s.text(key, words.of(fallback));
    if (const auto value = words.value(word)) return *value;
    std::string all;
    for (const std::string& w : words.all()) all += (all.empty() ? "" : ", ") + w;
    s.fail(key, "is \"" + word + "\"; expected one of " + all);
}

fs::path path_in(Section& s, const char* key, const fs::path& directory) {
    return s.has(key) ? directory / s.text(key) : fs::path();
}

Vec3d vector(Section& s, const char* key, const NumberRange& range) {
    const auto v = s.numbers(key, range);
    if (v.empty()) return {0, 0, 0};
    if (v.size() != 3) s.fail(key, "must have three numbers");
    return {v[0], v[1], v[2]};
}

std::optional<std::uint16_t> instance_of(Section& s) {
    if (!s.has("instance")) return std::nullopt;
    return static_cast<std::uint16_t>(s.whole("instance", 1, 65535));
}

/// The name of an object; the folder of a bank starts at the file, as all paths do.
std::string object_from(std::string name, const fs::path& directory) {
    if (auto bank = BankName::parse(name)) {
        bank->folder = directory / bank->folder;
        return bank->text();
    }
    return name;
}

/// A class is a name or a number.
std::string class_of(Section& s) {
    return s.has("label") ? std::to_string(s.whole("label", 0, 65534)) : s.text("class", "");
}

bool ground_of(Section& s) {
    const std::string word = s.text("ground", "file");
    if (word != "file" && word != "city") s.fail("ground", "is \"" + word + "\"; expected file or city");
    return word == "city";
}

std::map<std::string, std::string> dictionary(Section& s, const char* key) {
    Section table = s.section(key);
    std::map<std::string, std::string> result;
    for (const std::string& name : table.keys()) result[name] = table.text(name);
    table.finish();
    return result;
}

ObjectDescription read_object(Section& s, const fs::path& directory) {
    ObjectDescription d;
    d.name = s.text("name");
    const std::string shape = s.text("shape", "mesh");
    if (shape == "mesh") {
        d.file = directory / s.text("file");
        d.axes = choice(s, "axes", io::kMeshAxes, d.axes);
        d.origin = choice(s, "origin", ObjectDescription::kOrigins, d.origin);
        d.scale = s.number("scale", kScale, 1.0);
    } else if (shape == "box" || shape == "cube") {
        d.form = ObjectDescription::Form::box;
        const auto v = s.numbers("size_m", kExtent_m);
        if (v.size() != 1 && v.size() != 3)
            s.fail("size_m", "must be one number, or length, width and height");
        d.size = v.size() == 1 ? ObjectSize{v[0], v[0], v[0]} : ObjectSize{v[0], v[1], v[2]};
    } else if (shape == "sphere") {
        d.form = ObjectDescription::Form::sphere;
        const double diameter = s.number("size_m", kExtent_m);
        d.size = {diameter, diameter, diameter};
    } else {
        s.fail("shape", "is \"" + shape + "\"; expected mesh, box, cube or sphere");
    }
    d.class_name = class_of(s);
    if (s.has("reflectance")) d.reflectance = s.number("reflectance", kReflectance);
    s.finish();
    return d;
}

ScenarioActor read_actor(Section& s, const fs::path& directory) {
    ScenarioActor a;
    const std::string object = s.text("object");
    a.object = object_from(object, directory);
    a.name = s.text("name", object);
    a.class_name = class_of(s);
    a.track = path_in(s, "track", directory);
    a.place = read_pose(s, "place_m", "place_deg");
    if (s.has("track") == s.has("place_m")) s.fail("track", "or \"place_m\": an actor has one of them");
    if (s.has("track") && s.has("place_deg")) s.fail("place_deg", "belongs to \"place_m\"");
    a.instance = instance_of(s);
    a.from_s = s.number("from_s", ranges::kTime_s, a.from_s);
    a.to_s = s.number("to_s", ranges::kTime_s, a.to_s);
    if (!(a.from_s < a.to_s)) s.fail("to_s", "is not after \"from_s\"");
    a.on_ground = ground_of(s);
    s.finish();
    return a;
}

ScenarioTraffic read_traffic(Section& s, const fs::path& directory) {
    ScenarioTraffic t;
    TrackOptions& o = t.options;
    t.file = directory / s.text("file");
    o.format = choice(s, "format", TrackOptions::kFormats, o.format);
    o.angles = choice(s, "angles", TrackOptions::kAngles, o.angles);
    o.calibration = path_in(s, "calibration", directory);
    o.poses = path_in(s, "poses", directory);
    o.times = path_in(s, "times", directory);
    o.scene = s.text("scene", "");
    o.types = path_in(s, "types", directory);
    o.network = path_in(s, "network", directory);
    o.reference_m = vector(s, "reference_m", ranges::kLever_m);
    o.position_offset_m = vector(s, "offset_m", ranges::kPosition_m);
    o.time_offset_s = s.number("time_offset_s", ranges::kTime_s, 0.0);
    t.objects = dictionary(s, "objects");
    for (auto& [class_name, object] : t.objects) object = object_from(object, directory);
    t.fit = s.flag("fit", false);
    t.classes = dictionary(s, "classes");
    t.reflectance = s.number("reflectance", kReflectance, t.reflectance);
    t.on_ground = ground_of(s);
    s.finish();
    return t;
}

ScenarioObstacle read_obstacle(Section& s, const fs::path& directory) {
    ScenarioObstacle o;
    ObstacleField& f = o.field;
    const std::string object = s.text("object");
    o.object = object_from(object, directory);
    o.name = s.text("name", object);
    f.motion = choice(s, "motion", ObstacleField::kMotions, f.motion);
    f.seed = s.whole("seed", 0, std::uint64_t{1} << 53, 1.0);
    f.count = static_cast<std::uint32_t>(s.whole("count", 1, 10'000, 1.0));
    f.region.min = vector(s, "min_m", ranges::kPosition_m);
    f.region.max = vector(s, "max_m", ranges::kPosition_m);
    if (!s.has("min_m")) s.fail("min_m", "is missing: the corner of the region where they move");
    if (!s.has("max_m")) s.fail("max_m", "is missing: the corner of the region where they move");
    const Vec3d size = f.region.max - f.region.min;
    if (!(size.x >= 0 && size.y >= 0 && size.z >= 0)) s.fail("max_m", "is below \"min_m\"");
    if (f.motion == ObstacleField::Motion::free_fall) {
        if (!(size.z >= 0.01)) s.fail("max_m", "must be above \"min_m\": there is nothing to fall through");
    } else {
        const auto speed = s.numbers("speed_m_s", kSpeed_m_s);
        if (speed.size() != 1 && speed.size() != 2)
            s.fail("speed_m_s", "must be one number, or the slowest and the fastest");
        f.slowest_m_s = speed.front(), f.fastest_m_s = speed.back();
        if (!(f.slowest_m_s <= f.fastest_m_s)) s.fail("speed_m_s", "must be the slowest and the fastest");
    }
    if (f.motion == ObstacleField::Motion::random_walk)
        f.leg_s = s.number("leg_s", {0.001, 1000, "s"}, f.leg_s);
    if ((o.has_start = s.has("start_s"))) f.start_s = s.number("start_s", ranges::kTime_s);
    s.finish();
    return o;
}

ScenarioSnapshots read_snapshots(Section& s, const fs::path& directory) {
    ScenarioSnapshots played;
    played.folder = path_in(s, "folder", directory);
    played.time_offset_s = s.number("time_offset_s", ranges::kTime_s, 0.0);
    if (s.has("repeat_s")) played.repeat_s = s.number("repeat_s", {0.001, 1e6, "s"});
    s.finish();
    return played;
}

}  // namespace

std::optional<BankName> BankName::parse(const std::string& text) {
    constexpr std::string_view kBegin = "bank:";
    if (!text.starts_with(kBegin)) return std::nullopt;
    const std::size_t hash = text.find('#');
    const std::size_t folder_end = hash == std::string::npos ? text.size() : hash;
    return BankName{text.substr(kBegin.size(), folder_end - kBegin.size()),
                    hash == std::string::npos ? std::string() : text.substr(hash + 1)};
}

std::string BankName::text() const {
    return "bank:" + folder.string() + (object.empty() ? "" : "#" + object);
}

Pose read_pose(Section& s, const char* position_key, const char* angles_key) {
    Pose pose;
    pose.translation = vector(s, position_key, ranges::kPosition_m);
    const Vec3d deg = vector(s, angles_key, ranges::kAngle_deg);
    pose.rotation = from_yaw_pitch_roll(deg.x * exact::kRadPerDegree, deg.y * exact::kRadPerDegree,
                                        deg.z * exact::kRadPerDegree);
    return pose;
}

ScenarioVehicle read_vehicle(Section& s, const fs::path& directory) {
    ScenarioVehicle v;
    v.name = s.text("name");
    if (v.name.empty() || v.name.find('/') != std::string::npos || v.name[0] == '.')
        s.fail("name", "is a directory below the output and may not contain '/' nor begin with '.'");
    v.object = object_from(s.text("object", ""), directory);
    v.class_name = class_of(s);
    v.trajectory = path_in(s, "trajectory", directory);
    v.body_from_object = read_pose(s, "object_m", "object_deg");
    v.instance = instance_of(s);
    v.sees_itself = s.flag("self", false);
    return v;
}

void read_things(Section& root, const fs::path& directory, ScenarioThings& things) {
    for (Section& s : root.sections("object")) things.objects.push_back(read_object(s, directory));
    for (Section& s : root.sections("actor")) things.actors.push_back(read_actor(s, directory));
    for (Section& s : root.sections("traffic")) things.traffic.push_back(read_traffic(s, directory));
    for (Section& s : root.sections("obstacle")) things.obstacles.push_back(read_obstacle(s, directory));
    for (Section& s : root.sections("snapshots")) things.snapshots.push_back(read_snapshots(s, directory));
}

void check_things(const ScenarioThings& things, const std::string& file) {
    std::set<std::string> objects, vehicles;
    for (const ObjectDescription& o : things.objects)
        if (BankName::parse(o.name))
            throw ConfigError(file + ": the name \"" + o.name +
                              "\" of an [[object]] begins with \"bank:\", which names objects of banks");
    for (const ObjectDescription& o : things.objects)
        if (!objects.insert(o.name).second)
            throw ConfigError(file + ": two objects are named \"" + o.name + "\"");
    for (const ScenarioVehicle& v : things.vehicles)
        if (!vehicles.insert(v.name).second)
            throw ConfigError(file + ": two vehicles are named \"" + v.name + "\"");
    const auto require = [&](const std::string& object, const std::string& who) {
        if (!object.empty() && !BankName::parse(object) && !objects.contains(object))
            throw ConfigError(file + ": " + who + " is the object \"" + object +
                              "\", but no [[object]] has that name");
    };
    for (const ScenarioActor& a : things.actors) require(a.object, "actor \"" + a.name + "\"");
    for (const ScenarioVehicle& v : things.vehicles) require(v.object, "vehicle \"" + v.name + "\"");
    for (const ScenarioObstacle& o : things.obstacles) require(o.object, "obstacle \"" + o.name + "\"");
    for (const ScenarioTraffic& t : things.traffic)
        for (const auto& [class_name, object] : t.objects)
            require(object, "class \"" + class_name + "\" of " + t.file.string());
}

}  // namespace citysplat::sim
