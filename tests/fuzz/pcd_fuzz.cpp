#include "core/formats/pcd_file.hpp"
#include "fuzz.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    fuzz::read_points([&](const ReadOptions& options) { return formats::open_pcd(file.open(), options); });
    return 0;
}
