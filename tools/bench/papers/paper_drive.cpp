#include "bench/papers/paper_drive.hpp"

#include "bench/bench_files.hpp"
#include "core/error.hpp"
#include "io/input/input_list.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <utility>

namespace citysplat::bench {

namespace {

PaperDrive open_synthetic(const std::filesystem::path& directory) {
    Trajectory trajectory = Trajectory::read_tum(directory / "trajectory.tum");
    PointStore store(las_files_of(directory), trajectory);
    return {ClassMap::load("synthetic"), std::move(trajectory), std::move(store),
            synth::Truth::load(directory)};
}

}  // namespace

PaperDrive open_paper_drive(const DriveWords& words) {
    if (synth::holds_drive(words.inputs)) return open_synthetic(words.inputs);
    const std::vector<std::string> arguments{words.inputs};
    io::DriveOptions options;
    options.use_poses_tum = words.trajectory.empty();
    const auto sources = expand_inputs(arguments, {}, options);
    Trajectory trajectory;
    if (!words.trajectory.empty())
        trajectory = read_trajectory(words.trajectory);
    else if (!sources.empty() && sources[0].drive)
        trajectory = sources[0].drive->trajectory;
    if (trajectory.empty())
        throw InputError(words.inputs + ": nobody knows where the sensor was; give --trajectory");
    PointStore store(sources, trajectory);
    return {words.classes.empty() ? ClassMap() : ClassMap::load(words.classes), std::move(trajectory),
            std::move(store), std::nullopt};
}

PaperDrive make_paper_drive(const std::filesystem::path& directory, const synth::SynthOptions& options) {
    Progress quiet;
    synth::write_drive(directory, options, quiet, CancelToken());
    return open_synthetic(directory);
}

}  // namespace citysplat::bench
