#include "fuzz.hpp"
#include "io/drive/nuscenes_tables.hpp"

#include <sstream>

using namespace citysplat;

/// One JSON text for all tables, "-----" between them, in the order in which they are asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    std::size_t at = 0;
    const auto open = [&](const std::string&) {
        const std::size_t end = std::min(text.find("-----", at), text.size());
        auto table = std::make_unique<std::istringstream>(text.substr(at, end - at));
        at = std::min(end + 5, text.size());
        return table;
    };
    try {
        for (const auto& scene :
             io::read_nuscenes_tables(open, "LIDAR_TOP", [](const std::string&) { return true; }))
            for (const io::NuscenesScan& scan : scene.scans)
                if (!(scan.time_s >= 0) || !(length(scan.world_from_sensor.translation) < 1e10)) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
