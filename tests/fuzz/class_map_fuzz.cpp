#include "fuzz.hpp"
#include "model/class_map.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const ClassMap map = ClassMap::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
        (void)map.at(7);
    } catch (const Error&) {
    }
    return 0;
}
