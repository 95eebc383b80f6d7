#include "track_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    citysplat::fuzz::read_track_files(data, size, citysplat::TrackOptions::Format::kitti_360);
    return 0;
}
