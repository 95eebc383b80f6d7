#include "citysplat/input_flags.hpp"

#include "citysplat/number_flags.hpp"
#include "core/error.hpp"
#include "io/input/adjusted_file.hpp"

#include <CLI/CLI.hpp>

#include <cmath>

namespace citysplat::cli {

void InputFlags::add_to(CLI::App& verb) {
    verb.add_option("--units", units_, "coordinates that are not metres: refuse, scale (to metres) or as-is")
        ->check(CLI::IsMember(ReadOptions::kUnits.all()))
        ->capture_default_str();
    verb.add_option("--crs", crs_, "coordinate system of files that do not say: EPSG:n or WKT");
    verb.add_option("--to-crs", to_crs_,
                    "convert coordinates to this system (by PROJ; heights only to metres): EPSG:n or WKT");
    verb.add_option("--labels", labels_,
                    "labels in files of their own: a folder with one per cloud, or a file");
    verb.add_option("--adjusted", adjusted_,
                    "what citysplat adjust made of the trajectory: moves each point to where it belongs")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb.add_option("--columns", columns_,
                    "names of the columns of text files, e.g. \"x y z intensity label\"");
    verb.add_option("--intensity-range", intensity_range_, "intensities that become 0 and 65535")
        ->expected(2)
        ->check(in_range({-1e9, 1e9}))
        ->type_name("LOW HIGH");
    verb.add_option("--reader", reader_, "who decodes LAS and LAZ: auto, native or laslib")
        ->check(CLI::IsMember(ReadOptions::kReaders.all()))
        ->capture_default_str();
    verb.add_flag("--ignore-bounds", ignore_bounds_,
                  "LAS and LAZ: the bounds in the header are wrong, do not hold the points to them");
    verb.add_flag("--salvage", salvage_, "leave out and count what is damaged instead of refusing the file");
    add_drive_flags(verb);
    add_mask_flags(verb);
}

void InputFlags::add_drive_flags(CLI::App& verb) {
    const auto group = [](CLI::Option* option) { return option->group("Drives"); };
    group(
        verb.add_flag("--no-drive", no_drive_,
                      "read files as they are, also in the folder of a drive (KITTI, nuScenes, poses.tum)"));
    group(verb.add_option("--compensated", compensated_,
                          "the scans were compensated for motion: auto, no, or to the begin, middle or end "
                          "of the turn"))
        ->check(CLI::IsMember(io::DriveOptions::kCompensated.all()))
        ->capture_default_str();
    group(verb.add_option("--spin", spin_,
                          "how the sensor turns, from above: auto, clockwise, counterclockwise"))
        ->check(CLI::IsMember(io::DriveOptions::kSpins.all()))
        ->capture_default_str();
    group(verb.add_option("--rate", rate_hz_, "turns of the sensor a second, where the folder does not say"))
        ->check(in_range({1, 200, "Hz"}))
        ->type_name("HZ");
    group(verb.add_option("--scene", scene_, "nuScenes: which scene, e.g. scene-0061"))->type_name("NAME");
    group(verb.add_option("--origin", origin_,
                          "KITTI raw: latitude, longitude (degrees) and altitude (m) that become 0, 0, 0"))
        ->expected(3)
        ->check(in_range({-100'000, 100'000}))
        ->type_name("LAT LON ALT");
}

void InputFlags::add_mask_flags(CLI::App& verb) {
    const auto group = [](CLI::Option* option) { return option->group("Masks"); };
    const auto range = in_range({0.001, 100'000, "m"});
    group(verb.add_option("--min-range", min_range_m_, "leave out points nearer than this to the sensor"))
        ->check(range)
        ->type_name("M");
    group(verb.add_option("--max-range", max_range_m_, "leave out points farther than this from the sensor"))
        ->check(range)
        ->type_name("M");
    group(verb.add_option("--mask-box", mask_boxes_,
                          "leave out a box in the frame of the sensor; may be given again"))
        ->allow_extra_args(false)
        ->type_name("XMIN,YMIN,ZMIN,XMAX,YMAX,ZMAX");
    group(verb.add_flag("--no-own-car", no_own_car_, "keep what is found to be the recording car itself"));
}

namespace {

Box3d parse_box(const std::string& text) {
    double v[6];
    std::size_t count = 0, at = 0;
    for (; count < 6 && at <= text.size(); ++count) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const auto number = parse_number(std::string_view(text).substr(at, comma - at));
        if (!number || !ranges::kLever_m.contains(*number)) break;
        v[count] = *number;
        at = comma + 1;
    }
    if (count != 6 || at <= text.size())
        throw UsageError("--mask-box " + text + ": expected six numbers " + ranges::kLever_m.text() +
                         " with commas between: xmin,ymin,zmin,xmax,ymax,zmax");
    const Box3d box{{v[0], v[1], v[2]}, {v[3], v[4], v[5]}};
    if (!(box.min.x < box.max.x && box.min.y < box.max.y && box.min.z < box.max.z))
        throw UsageError("--mask-box " + text + ": the first three numbers must be below the last three");
    return box;
}

}  // namespace

io::DriveOptions InputFlags::drive_options(bool has_trajectory) const {
    io::DriveOptions options;
    options.recognise = !no_drive_;
    options.use_poses_tum = !has_trajectory;
    options.compensated = io::DriveOptions::kCompensated.value(compensated_).value();
    options.spin = io::DriveOptions::kSpins.value(spin_).value();
    if (rate_hz_ > 0) options.rate_hz = rate_hz_;
    options.scene = scene_;
    if (origin_.size() == 3) {
        options.origin = {origin_[0], origin_[1], origin_[2]};
        if (!(std::abs(origin_[0]) <= 85 && std::abs(origin_[1]) <= 180))
            throw UsageError("--origin: expected a latitude within 85 and a longitude within 180 degrees");
    }
    options.own_car = !no_own_car_;
    return options;
}

ReadOptions InputFlags::read_options() const {
    ReadOptions options;
    options.units = ReadOptions::kUnits.value(units_).value();
    options.reader = ReadOptions::kReaders.value(reader_).value();
    options.salvage = salvage_;
    options.ignore_bounds = ignore_bounds_;
    options.crs = crs_;
    options.to_crs = to_crs_;
    if (!to_crs_.empty() && options.units != ReadOptions::Units::refuse)
        throw UsageError("--to-crs makes metres of every unit; leave out --units");
    options.text_columns = columns_;
    if (intensity_range_.size() == 2) {
        options.intensity_range = {intensity_range_[0], intensity_range_[1]};
        if (!(intensity_range_[0] < intensity_range_[1]))
            throw UsageError("--intensity-range: the first number must be below the second");
    }
    if (min_range_m_ > 0) options.mask.min_range_m = min_range_m_;
    if (max_range_m_ > 0) options.mask.max_range_m = max_range_m_;
    if (!(options.mask.min_range_m < options.mask.max_range_m))
        throw UsageError("--min-range must be below --max-range");
    for (const std::string& box : mask_boxes_) options.mask.boxes.push_back(parse_box(box));
    return options;
}

ReadOptions InputFlags::read_options(const std::filesystem::path& trajectory,
                                     const TrajectoryOptions& how) const {
    ReadOptions options = read_options();
    if (!adjusted_.empty()) options.adjustment = io::read_adjustment(trajectory, how, adjusted_);
    return options;
}

void TrajectoryFlags::add_to(CLI::App& verb) {
    const auto group = [&verb](CLI::Option* option) { return option->group("Trajectory"); };
    group(verb.add_option("--trajectory-format", format_, "auto, tum, kitti, csv or sbet"))
        ->check(CLI::IsMember(TrajectoryOptions::kFormats.all()))
        ->capture_default_str();
    group(verb.add_option("--trajectory-columns", columns_,
                          "CSV columns by role, e.g. time=slice_t heading=kappa_deg"));
    group(verb.add_option("--angles", angles_,
                          "unit of CSV angles that are not named _deg or _rad: deg or rad"))
        ->check(CLI::IsMember(TrajectoryOptions::kAngles.all()));
    group(verb.add_option("--time-offset", time_offset_s_, "seconds added to the times of the trajectory"))
        ->check(in_range(ranges::kTime_s))
        ->type_name("S");
    group(verb.add_option("--gps-week", gps_week_, "times are seconds of this GPS week"))
        ->check(whole_from(0, 10000));
    group(verb.add_flag("--adjusted-gps-time", adjusted_, "subtract 10^9 s, as LAS files do"));
    group(verb.add_option("--trajectory-offset", position_offset_m_, "metres added to its positions"))
        ->expected(3)
        ->check(in_range(ranges::kPosition_m))
        ->type_name("X Y Z");
    group(verb.add_option("--trajectory-epsg", epsg_, "SBET: projected system its latitudes become"))
        ->check(whole_from(1, 999'999));
    group(verb.add_flag("--allow-gaps", allow_gaps_, "accept holes in the recording"));
}

TrajectoryOptions TrajectoryFlags::options() const {
    TrajectoryOptions o;
    o.format = TrajectoryOptions::kFormats.value(format_).value();
    o.angles = TrajectoryOptions::kAngles.value(angles_).value();
    for (const auto& text : columns_) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0)
            throw UsageError("--trajectory-columns " + text + ": expected role=name, e.g. time=slice_t");
        o.columns[text.substr(0, equals)] = text.substr(equals + 1);
    }
    o.time_offset_s = time_offset_s_;
    if (gps_week_ >= 0) o.gps_week = gps_week_;
    o.adjusted_gps_time = adjusted_;
    if (position_offset_m_.size() == 3)
        o.position_offset_m = {position_offset_m_[0], position_offset_m_[1], position_offset_m_[2]};
    o.epsg = epsg_;
    o.allow_gaps = allow_gaps_;
    return o;
}

}  // namespace citysplat::cli
