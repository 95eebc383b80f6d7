#include "fuzz.hpp"
#include "io/drive/oxts.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        const io::OxtsRecord r = io::parse_oxts(text, "record");
        const io::OxtsPlane plane({r.latitude_deg, r.longitude_deg, r.altitude_m});
        if (!(length(plane.world_from_body(r).translation) < 1e-6)) std::abort();
    } catch (const Error&) {
    }
    const fuzz::MemoryFile file(data, size);
    try {
        for (const auto& time_s : io::read_timestamps(file.path()))
            if (time_s && !(*time_s > -1e12 && *time_s < 1e12)) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
