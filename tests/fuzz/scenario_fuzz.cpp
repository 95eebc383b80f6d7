#include "fuzz.hpp"
#include "sim/drive/scenario.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    try {
        const sim::Scenario scenario = sim::Scenario::load(file.path());
        for (const sim::ScenarioSensor& sensor : scenario.sensors) (void)scenario.trajectory_of(sensor);
    } catch (const Error&) {
    }
    return 0;
}
