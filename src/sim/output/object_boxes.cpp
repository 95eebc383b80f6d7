#include "sim/output/object_boxes.hpp"

#include "core/csv_cell.hpp"
#include "core/math/math_hd.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace citysplat::sim {

namespace {

Box3d box_of(const Shape& shape) {
    if (const auto* mesh = std::get_if<TriangleMesh>(&shape.form)) return mesh->box();
    const SplatTile& tile = std::get<SplatTile>(shape.form);
    Box3d box = kEmptyBox;
    for (std::size_t i = 0; i < tile.size(); ++i) box.grow(vec_cast<double>(tile.disc(i).centre));
    return box;
}

/// A type of KITTI is one word.
std::string word(const std::string& text) {
    std::string safe;
    for (const char c : text) safe += static_cast<unsigned char>(c) <= 32 ? '_' : c;
    return safe.empty() ? "Misc" : safe;
}

struct Angles {
    double yaw, pitch, roll;
};
Angles angles_of(const Quaternion& q) {
    const Vec3d x = rotate(q, {1, 0, 0}), y = rotate(q, {0, 1, 0}), z = rotate(q, {0, 0, 1});
    return {exact::atan2(x.y, x.x), -exact::asin(std::clamp(x.z, -1.0, 1.0)), exact::atan2(y.z, z.z)};
}

}  // namespace

ObjectBoxes::ObjectBoxes(const Traffic& traffic, std::vector<ActorRow> rows, std::vector<FrameRow> frame_rows)
    : traffic_(traffic), rows_(std::move(rows)), frame_rows_(std::move(frame_rows)) {
    std::vector<Box3d> boxes;
    for (const Shape& shape : traffic.shapes()) boxes.push_back(box_of(shape));
    for (std::uint32_t i = 0; i < traffic.actors().size(); ++i) {
        const Actor& actor = traffic.actors()[i];
        const Box3d& b = boxes[actor.shape];
        const Pose shape_from_box{{(b.min.x + b.max.x) / 2, (b.min.y + b.max.y) / 2, b.min.z}, {}};
        local_.push_back({actor.object_from_shape * shape_from_box,
                          {b.max.x - b.min.x, b.max.y - b.min.y, b.max.z - b.min.z}});
        by_instance_[actor.instance].push_back(i);
    }
}

std::vector<SeenBox> ObjectBoxes::seen_in(const Scan& scan) const {
    struct Sum {
        std::uint64_t returns = 0;
        double time_s = 0;
    };
    std::map<std::uint16_t, Sum> sums;
    for (const Return& r : scan.returns) {
        if (r.status != RayStatus::hit || r.instance == 0) continue;
        Sum& sum = sums[r.instance];
        ++sum.returns;
        sum.time_s += static_cast<double>(r.time_s);
    }
    std::vector<SeenBox> boxes;
    for (const auto& [instance, sum] : sums) {
        const auto found = by_instance_.find(instance);
        if (found == by_instance_.end()) continue;
        const double time_s = scan.time_s + sum.time_s / static_cast<double>(sum.returns);
        // Of several pieces or pictures the one that is there at that time, else the one that is nearest to
        // it.
        const auto away = [&](std::uint32_t i) {
            const Track& track = traffic_.actors()[i].track;
            return std::max({0.0, track.begin_s - time_s, time_s - track.end_s});
        };
        const std::uint32_t actor =
            *std::min_element(found->second.begin(), found->second.end(),
                              [&](std::uint32_t a, std::uint32_t b) { return away(a) < away(b); });
        boxes.push_back({actor, sum.returns, time_s,
                         traffic_.actors()[actor].track.pose_at(time_s) * local_[actor].object_from_box,
                         local_[actor].size});
    }
    return boxes;
}

std::string ObjectBoxes::csv(std::span<const SeenBox> boxes) const {
    std::string text =
        "time,id,instance,name,class,x,y,z,yaw_rad,pitch_rad,roll_rad,length,width,height,returns\n";
    for (const SeenBox& b : boxes) {
        const Angles a = angles_of(b.world_from_box.rotation);
        const Vec3d t = b.world_from_box.translation;
        const Actor& actor = traffic_.actors()[b.actor];
        char numbers[512];
        std::snprintf(numbers, sizeof numbers, ",%.6f,%.6f,%.6f,%.9f,%.9f,%.9f,%.6f,%.6f,%.6f,%llu\n", t.x,
                      t.y, t.z, a.yaw, a.pitch, a.roll, b.size.length_m, b.size.width_m, b.size.height_m,
                      static_cast<unsigned long long>(b.returns));
        char head[64];
        std::snprintf(head, sizeof head, "%.9f,%u,%u,", b.time_s, b.actor, unsigned{actor.instance});
        text += head + csv_cell(actor.name) + "," + csv_cell(rows_[b.actor].class_name) + numbers;
    }
    return text;
}

std::string ObjectBoxes::kitti(std::span<const SeenBox> boxes, const Scan& scan) const {
    const Pose sensor_from_world = inverse(scan.world_from_sensor);
    std::string text;
    for (const SeenBox& b : boxes) {
        const Pose p = sensor_from_world * b.world_from_box;
        const Vec3d x = rotate(p.rotation, {1, 0, 0});
        // Camera: (−y, −z, x). rotation_y turns forward from the camera's x to (cos, 0, −sin).
        const double right = -p.translation.y, down = -p.translation.z, forward = p.translation.x;
        const double rotation_y = exact::atan2(-x.x, -x.y);
        double alpha = rotation_y - exact::atan2(right, forward);
        if (alpha > exact::kPi) alpha -= 2 * exact::kPi;
        if (alpha < -exact::kPi) alpha += 2 * exact::kPi;
        char line[512];
        std::snprintf(line, sizeof line, " 0 0 %.6f 0 0 0 0 %.6f %.6f %.6f %.6f %.6f %.6f %.9f\n", alpha,
                      b.size.height_m, b.size.width_m, b.size.length_m, right, down, forward, rotation_y);
        text += std::to_string(scan.index) + " " + std::to_string(traffic_.actors()[b.actor].instance) + " " +
                word(rows_[b.actor].class_name) + line;
    }
    return text;
}

std::string ObjectBoxes::table() const {
    std::string text = "id,instance,name,class,object,length,width,height\n";
    for (std::uint32_t i = 0; i < traffic_.actors().size(); ++i) {
        const Actor& actor = traffic_.actors()[i];
        char size[128];
        std::snprintf(size, sizeof size, ",%.6f,%.6f,%.6f\n", local_[i].size.length_m, local_[i].size.width_m,
                      local_[i].size.height_m);
        text += std::to_string(i) + "," + std::to_string(actor.instance) + "," + csv_cell(actor.name) + "," +
                csv_cell(rows_[i].class_name) + "," + csv_cell(rows_[i].object) + size;
    }
    for (const FrameRow& row : frame_rows_)
        text += "," + std::to_string(row.instance) + ",," + csv_cell(row.class_name) + "," +
                csv_cell(row.object) + ",,,\n";
    return text;
}

}  // namespace citysplat::sim
