#include "citysplat/drive_report.hpp"

#include "citysplat/file_report.hpp"

namespace citysplat::cli {

std::string page_of(const io::Drive& drive) {
    std::string out = drive.folder.string() + "\n";
    page_line(out, "drive", drive.kind);
    for (const auto& [name, text] : drive.facts) page_line(out, name, text);
    const Vec3d& lever = drive.lever_arm_m;
    if (length(lever) > 0)
        page_line(out, "lever arm",
                  fixed(lever.x, 3) + ", " + fixed(lever.y, 3) + ", " + fixed(lever.z, 3) +
                      " m from the body whose poses are given to the sensor");
    page_line(out, "own car",
              drive.own_car.empty()
                  ? "not found"
                  : std::to_string(drive.own_car.size()) +
                        " cells of 20 cm around the sensor, left out (--no-own-car keeps them)");
    for (const std::string& text : drive.assumptions) page_line(out, "assumed", text);
    return out;
}

nlohmann::json json_of(const std::vector<std::shared_ptr<const io::Drive>>& drives) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& drive : drives) {
        nlohmann::json facts = nlohmann::json::object();
        for (const auto& [name, text] : drive->facts) facts[name] = text;
        const Vec3d& lever = drive->lever_arm_m;
        all.push_back({{"folder", drive->folder.string()},
                       {"kind", drive->kind},
                       {"scans", drive->scans.size()},
                       {"rate_hz", drive->rate_hz},
                       {"frame", Sweep::kFrames.of(drive->frame)},
                       {"compensated", drive->frame != Sweep::Frame::moving},
                       {"path_m", drive->trajectory.length_m()},
                       {"times_s", {drive->trajectory.begin_s(), drive->trajectory.end_s()}},
                       {"lever_arm_m", {lever.x, lever.y, lever.z}},
                       {"own_car_cells", drive->own_car.size()},
                       {"facts", facts},
                       {"assumptions", drive->assumptions}});
    }
    return all;
}

}  // namespace citysplat::cli
