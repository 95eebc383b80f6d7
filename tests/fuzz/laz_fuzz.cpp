#include "fuzz.hpp"
#include "io/las/las_file.hpp"

using namespace citysplat;

/// Files that are compressed: the header is made to say so, that changes of it do not lead away from LAZ.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> bytes(data, data + size);
    if (bytes.size() > 104) bytes[104] = static_cast<std::uint8_t>(bytes[104] | 0x80);
    const fuzz::MemoryFile file(bytes.data(), bytes.size());
    fuzz::read_points([&](const ReadOptions& options) { return io::open_las(file.open(), options); });
    return 0;
}
