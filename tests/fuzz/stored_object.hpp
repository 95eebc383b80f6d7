#pragma once

#include "core/error.hpp"
#include "temp_dir.hpp"
#include "tiling/store/object_store.hpp"

#include <span>

namespace citysplat::fuzz {

struct MemoryStore {
    test::TempDir directory{test::memory_directory()};
    tiling::ObjectStore objects{tiling::CityPaths(directory.path())};
    MemoryStore() { objects.create_layout(); }
};

/// Hands the bytes to a reader as an object whose name fits them, so that only its own checks stand in the
/// way.
template <typename Read>
void read_stored(const std::uint8_t* data, std::size_t size, const Read& read) {
    static MemoryStore memory;
    tiling::ObjectStore& store = memory.objects;
    auto writer = store.create();
    writer.append(std::as_bytes(std::span(data, size)));
    const Hash128 name = writer.finish();
    store.flush();
    try {
        read(store, name);
    } catch (const Error&) {
    }
    store.remove(name);
}

}  // namespace citysplat::fuzz
