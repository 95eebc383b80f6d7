#include "citysplat/moving/clearance_report.hpp"

#include "core/bytes.hpp"
#include "core/text.hpp"
#include "model/disc_bounds_hd.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace citysplat::cli {

namespace {

std::string nearest_name(const sim::ClearanceReport& report, const sim::Traffic& traffic) {
    return report.nearest.actor ? traffic.actors()[*report.nearest.actor].name : std::string("city");
}

Box3d box_of(const sim::Shape& shape, const Pose& object_from_shape) {
    Box3d box = kEmptyBox;
    const auto place = [&](Vec3f p) { return object_from_shape.apply(vec_cast<double>(p)); };
    if (const auto* mesh = std::get_if<TriangleMesh>(&shape.form)) {
        for (const Vec3f v : mesh->vertices) box.grow(place(v));
        return box;
    }
    const SplatTile& discs = std::get<SplatTile>(shape.form);
    for (std::size_t i = 0; i < discs.size(); ++i) {
        const Disc d = discs.disc(i);
        const Vec3d normal = rotate(object_from_shape.rotation, vec_cast<double>(d.normal));
        const auto reach = vec_cast<double>(disc_reach(vec_cast<float>(normal), d.radius));
        box.grow(place(d.centre) - reach), box.grow(place(d.centre) + reach);
    }
    return box;
}

}  // namespace

nlohmann::json clearance_json(const sim::ClearanceReport& r, double limit_m, const sim::Traffic& traffic) {
    nlohmann::json touched = nlohmann::json::array();
    for (const auto& [from_s, to_s] : r.touched_s) touched.push_back({from_s, to_s});
    nlohmann::json result{{"poses", r.poses},
                          {"touching", r.touching},
                          {"clearance_m", r.nearest.distance_m},
                          {"limit_m", limit_m},
                          {"touched", touched}};
    const Vec3d p = r.nearest.place;
    if (r.nearest.found)
        result["nearest"] = {{"time_s", r.nearest_s},
                             {"what", nearest_name(r, traffic)},
                             {"place_m", {p.x, p.y, p.z}},
                             {"label", r.nearest.label}};
    return result;
}

std::string clearance_text(const sim::ClearanceReport& r, double limit_m, const sim::Traffic& traffic) {
    const std::string text =
        format_count(r.poses) + " poses, " + format_count(r.touching) + " touch something";
    if (!r.nearest.found) return text + "; nothing within " + format_number(limit_m) + " m";
    return text + "; nearest: " + nearest_name(r, traffic) + ", " + format_number(r.nearest.distance_m) +
           " m at " + format_number(r.nearest_s) + " s";
}

Box3d body_box(const sim::Traffic& traffic, const sim::Actor& actor, double lift_m) {
    Box3d box = box_of(traffic.shapes()[actor.shape], actor.object_from_shape);
    box.min.z = std::min(box.min.z + lift_m, box.max.z);
    return box;
}

}  // namespace citysplat::cli
