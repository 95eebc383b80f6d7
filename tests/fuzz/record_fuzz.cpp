#include "fuzz.hpp"
#include "stored_object.hpp"
#include "tiling/store/generation_record.hpp"

using namespace citysplat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::read_stored(data, size, [](const tiling::ObjectStore& store, const Hash128& name) {
        (void)tiling::read_record(store, name);
    });
    return 0;
}
