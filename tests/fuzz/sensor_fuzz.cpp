#include "fuzz.hpp"
#include "sim/sensor/sensor.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        (void)sim::Sensor::parse({reinterpret_cast<const char*>(data), size}, "fuzz").rays_per_scan();
    } catch (const Error&) {
    }
    return 0;
}
