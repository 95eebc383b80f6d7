#include "fuzz.hpp"
#include "io/tracks/track_formats.hpp"

#include <sstream>

using namespace citysplat;

/// One JSON text for all tables, "-----" between them, in the order in which they are asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::size_t at = 0;
    const auto open = [&](const std::string&) {
        const std::size_t end = std::min(text.find("-----", at), text.size());
        auto table = std::make_unique<std::istringstream>(text.substr(at, end - at));
        at = std::min(end + 5, text.size());
        return table;
    };
    try {
        const TrackOptions options;
        io::TrackBuilder boxes("tables", options);
        io::read_nuscenes_annotations(open, options, boxes, CancelToken());
        for (const Track& track : std::move(boxes).finish().tracks) track.check();
    } catch (const Error&) {
    }
    return 0;
}
