#include "fuzz.hpp"
#include "temp_dir.hpp"
#include "tiling/generation_record.hpp"

using namespace citysplat;

/// The bytes as the record of a generation, in a store where their name fits them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const test::TempDir directory(test::memory_directory());
    static tiling::ObjectStore* const store = [] {
        auto* made = new tiling::ObjectStore(tiling::CityPaths(directory.path()));
        made->create_layout();
        return made;
    }();
    auto writer = store->create();
    writer.append(std::as_bytes(std::span(data, size)));
    const Hash128 name = writer.finish();
    store->flush();
    try {
        (void)tiling::read_record(*store, name);
    } catch (const Error&) {
    }
    store->remove(name);
    return 0;
}
