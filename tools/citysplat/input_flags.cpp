#include "citysplat/input_flags.hpp"

#include "citysplat/number_flags.hpp"
#include "core/error.hpp"
#include "io/input/adjusted_file.hpp"

#include <CLI/CLI.hpp>

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
