#include "fuzz.hpp"
#include "temp_dir.hpp"
#include "tiling/object_store.hpp"
#include "tiling/splat_payload.hpp"

using namespace citysplat;

/// The bytes as a splat payload whose name fits them, so that only its own checks stand in the way.
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
        const auto payload = tiling::read_payload(*store, name, "fuzz");
        (void)payload.splats.digest();
    } catch (const Error&) {
    }
    store->remove(name);
    return 0;
}
