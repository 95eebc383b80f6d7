#include "mesh_check.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        fuzz::check(io::parse_glb({reinterpret_cast<const char*>(data), size}, "a.glb"));
    } catch (const Error&) {
    }
    return 0;
}
