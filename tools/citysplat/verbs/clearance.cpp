#include "sim/clearance/clearance.hpp"

#include "citysplat/context.hpp"
#include "citysplat/generations/generation_flag.hpp"
#include "citysplat/input_flags.hpp"
#include "citysplat/moving/clearance_report.hpp"
#include "citysplat/moving/scene.hpp"
#include "citysplat/number_flags.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "io/trajectory/trajectory_file.hpp"
#include "sim/drive/prepared_traffic.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

namespace {

struct ClearanceFlags {
    std::string city, trajectory, scenario, vehicle, mesh, resident = "512M";
    std::vector<double> box_m, place_m;
    double lift_m = 0.3, limit_m = 1, step_s = 0.1;
    double from_s = -std::numeric_limits<double>::infinity(), to_s = std::numeric_limits<double>::infinity();
    TrajectoryFlags how;
    GenerationFlag generation;
};

sim::ClearanceBody body_of(const ClearanceFlags& f) {
    if (f.mesh.empty() == f.box_m.empty()) throw UsageError("clearance needs --box or --mesh, one of them");
    const Pose place = sim::mount_from(f.place_m, {}, "--place");
    if (!f.mesh.empty()) {
        sim::ObjectDescription description;
        description.name = f.mesh;
        description.file = f.mesh;
        const sim::ObjectShape object = sim::make_object(description, ClassMap());
        return {std::get<TriangleMesh>(object.shape.form), place * object.object_from_shape};
    }
    const Vec3d t = place.translation;
    if (!(f.lift_m < f.box_m[2])) throw UsageError("--lift leaves nothing of the box");
    return sim::ClearanceBody(Box3d{{t.x - f.box_m[0] / 2, t.y - f.box_m[1] / 2, t.z + f.lift_m},
                                    {t.x + f.box_m[0] / 2, t.y + f.box_m[1] / 2, t.z + f.box_m[2]}});
}

void run_clearance(Context& context, const ClearanceFlags& f) {
    const sim::ClearanceBody body = body_of(f);
    if (!f.vehicle.empty() && f.scenario.empty()) throw UsageError("--vehicle is one of a --scenario");
    const sim::Scenario scenario = f.scenario.empty() ? sim::Scenario() : sim::Scenario::load(f.scenario);
    const auto opened = open_scene({f.city, f.generation}, scenario);
    const TileSource& city = *opened;
    const Trajectory trajectory = read_trajectory(f.trajectory, f.how.options());
    sim::PreparedTraffic traffic;
    std::uint32_t vehicle = sim::kNoVehicle;
    if (!f.scenario.empty()) {
        const auto& vehicles = scenario.things.vehicles;
        for (std::uint32_t i = 0; i < vehicles.size(); ++i)
            if (vehicles[i].name == f.vehicle) vehicle = i;
        if (!f.vehicle.empty() && vehicle == sim::kNoVehicle)
            throw UsageError(f.scenario + ": no [[vehicle]] is named \"" + f.vehicle + "\"");
        const auto tracer = trace::make_group_tracer();
        trace::ResidentCity resident(city, *tracer, {});
        const sim::SensorWay way{trajectory, f.from_s, f.to_s, f.limit_m};
        traffic = traffic_of(scenario, {&way, 1}, resident, context);
        if (!traffic.frames.empty())
            context.warn("[[snapshots]] are points that were seen, not bodies: they are passed over");
    }
    sim::ClearanceProbe probe(city, &traffic.traffic, {f.limit_m, parse_bytes(f.resident, "--resident")});
    const sim::ClearanceReport r = sim::clearance_along(
        probe, body, {trajectory, f.from_s, f.to_s, f.step_s, vehicle}, context.cancel());
    if (r.poses == 0)
        throw UsageError(f.trajectory + ": it has no pose between " +
                         format_number(std::max(f.from_s, trajectory.begin_s())) + " and " +
                         format_number(std::min(f.to_s, trajectory.end_s())) + " s; see --from and --to");
    context.result(clearance_json(r, f.limit_m, traffic.traffic),
                   clearance_text(r, f.limit_m, traffic.traffic) + "\n");
}

}  // namespace

void add_clearance(CLI::App& app, Context& context) {
    auto flags = std::make_shared<ClearanceFlags>();
    ClearanceFlags& f = *flags;
    CLI::App& verb =
        *app.add_subcommand("clearance", "how near a body comes to a city and to what moves in it");
    verb.fallthrough();
    verb.add_option("city", f.city,
                    "directory of the city; none: the scenario's own things are all there is");
    verb.add_option("--trajectory", f.trajectory, "poses of the body: TUM, KITTI, CSV or SBET")->required();
    verb.add_option("--box", f.box_m, "the body is a box: length,width,height in metres")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range({0.001, 1000, "m"}));
    verb.add_option("--mesh", f.mesh, "the body is the surface of a mesh: .glb, .obj or .ply")
        ->type_name("FILE");
    verb.add_option("--place", f.place_m,
                    "middle of the body's bottom in the frame of the poses, x,y,z in metres (a sensor on a "
                    "roof: 0,0,-1.7)")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(ranges::kLever_m));
    verb.add_option("--lift", f.lift_m,
                    "so much of the lower end of a box does not count: wheels touch the road")
        ->check(in_range({0, 1000, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--scenario", f.scenario, "what else is there: the objects of a scenario file");
    verb.add_option("--vehicle", f.vehicle,
                    "the body is this vehicle of the scenario: its own mesh does not count")
        ->type_name("NAME");
    verb.add_option("--limit", f.limit_m, "what is farther does not matter")
        ->check(in_range({0.001, 1000, "m"}))
        ->capture_default_str()
        ->type_name("M");
    verb.add_option("--step", f.step_s, "between two poses that are looked at")
        ->check(in_range({0.0001, 10'000, "s"}))
        ->capture_default_str()
        ->type_name("S");
    verb.add_option("--from", f.from_s, "begin at this time")
        ->check(in_range(ranges::kTime_s))
        ->type_name("S");
    verb.add_option("--to", f.to_s, "end at this time")->check(in_range(ranges::kTime_s))->type_name("S");
    verb.add_option("--resident", f.resident, "memory for tiles; never changes a result")
        ->capture_default_str()
        ->type_name("SIZE");
    f.how.add_to(verb);
    f.generation.add_to(verb);
    verb.footer(
        "Example: citysplat clearance city --trajectory drive.tum --box 4.5,1.8,1.5 --place 0,0,-1.9\n"
        "A disc touches a box when they have a point in common; distances are at most 0.1 mm too large.");
    verb.callback([flags, &context] { run_clearance(context, *flags); });
}

}  // namespace citysplat::cli
