#include "mesh_check.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    try {
        fuzz::check(io::read_ply_mesh(file.path()));
    } catch (const Error&) {
    }
    return 0;
}
