#include "io/input/sweep_words.hpp"

#include "core/error.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::io {

using nlohmann::json;

json to_words(const Sweep& sweep) {
    json poses = json::array();
    for (const auto& [time_s, pose] : sweep.poses) {
        const auto& [t, q] = pose;
        poses.push_back({time_s, t.x, t.y, t.z, q.x, q.y, q.z, q.w});
    }
    json j{{"frame", Sweep::kFrames.of(sweep.frame)},
           {"poses", std::move(poses)},
           {"reference_s", sweep.reference_s},
           {"begin_s", sweep.begin_s},
           {"end_s", sweep.end_s},
           {"start_azimuth_rad", sweep.start_azimuth_rad},
           {"clockwise", sweep.clockwise}};
    if (sweep.in_order) j["in_order"] = true;
    if (!sweep.elevations_rad.empty()) j["elevations_rad"] = sweep.elevations_rad;
    return j;
}

Sweep sweep_from(const json& j) {
    Sweep sweep;
    const auto frame = Sweep::kFrames.value(j.at("frame").get<std::string>());
    if (!frame)
        throw CorruptionError("the catalog says \"" + j.at("frame").dump() + "\" about the frame of a scan");
    sweep.frame = *frame;
    for (const json& p : j.at("poses"))
        sweep.poses.push_back({p.at(0), {{p.at(1), p.at(2), p.at(3)}, {p.at(4), p.at(5), p.at(6), p.at(7)}}});
    j.at("reference_s").get_to(sweep.reference_s);
    j.at("begin_s").get_to(sweep.begin_s);
    j.at("end_s").get_to(sweep.end_s);
    j.at("start_azimuth_rad").get_to(sweep.start_azimuth_rad);
    j.at("clockwise").get_to(sweep.clockwise);
    sweep.in_order = j.value("in_order", false);
    if (j.contains("elevations_rad")) j["elevations_rad"].get_to(sweep.elevations_rad);
    return sweep;
}

json to_words(const SensorMask& mask) {
    const SensorMask defaults;
    json j = json::object();
    if (mask.min_range_m != defaults.min_range_m) j["min_range_m"] = mask.min_range_m;
    if (mask.max_range_m != defaults.max_range_m) j["max_range_m"] = mask.max_range_m;
    for (const auto& [low, high] : mask.boxes)
        j["boxes"].push_back({low.x, low.y, low.z, high.x, high.y, high.z});
    if (!mask.own_car.empty()) j["own_car"] = mask.own_car;
    return j;
}

SensorMask mask_from(const json& j) {
    SensorMask mask;
    mask.min_range_m = j.value("min_range_m", mask.min_range_m);
    mask.max_range_m = j.value("max_range_m", mask.max_range_m);
    if (j.contains("boxes"))
        for (const json& b : j["boxes"])
            mask.boxes.push_back({{b.at(0), b.at(1), b.at(2)}, {b.at(3), b.at(4), b.at(5)}});
    if (j.contains("own_car")) j["own_car"].get_to(mask.own_car);
    return mask;
}

}  // namespace citysplat::io
