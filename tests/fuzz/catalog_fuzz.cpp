#include "fuzz.hpp"
#include "temp_dir.hpp"
#include "tiling/store/catalog.hpp"

using namespace citysplat;

/// The bytes as the catalog of a city: opened as readers do, and everything in it looked at.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const test::TempDir directory(test::memory_directory());  // SQLite wants a file with a name
    const auto path = directory / "catalog.sqlite";
    FileWriter out(path);
    out.write(std::as_bytes(std::span(data, size)));
    out.finish();
    try {
        tiling::Catalog catalog = tiling::Catalog::open_to_read(path);
        if (const auto latest = catalog.latest()) {
            (void)catalog.tiles(latest->id);
            for (const auto& input : catalog.inputs(latest->id)) {
                (void)catalog.source(input.source);
                (void)catalog.segments(input.source);
            }
        }
    } catch (const Error&) {
    }
    return 0;
}
