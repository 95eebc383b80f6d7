#include "fuzz.hpp"
#include "io/bag/bag_file.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    fuzz::read_points([&](const ReadOptions& options) { return io::open_bag(file.open(), options); });
    return 0;
}
