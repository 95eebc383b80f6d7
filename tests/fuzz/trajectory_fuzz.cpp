#include "fuzz.hpp"
#include "io/trajectory/trajectory_file.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    using Format = TrajectoryOptions::Format;
    for (const Format format : {Format::automatic, Format::tum, Format::kitti, Format::csv, Format::sbet}) {
        TrajectoryOptions options;
        options.format = format;
        options.angles = TrajectoryOptions::AngleUnit::degrees;
        options.epsg = 32631;
        try {
            const Trajectory trajectory = read_trajectory(file.path(), options);
            if (trajectory.empty() || !trajectory.at(trajectory.begin_s())) std::abort();
        } catch (const Error&) {
        }
    }
    return 0;
}
