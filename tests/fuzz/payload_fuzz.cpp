#include "core/hash.hpp"
#include "fuzz.hpp"
#include "stored_object.hpp"
#include "tiling/store/splat_payload.hpp"

#include <cstring>

using namespace citysplat;

/// The checksum at the end of the header is made to fit: no random change would, and what lies behind it is
/// to be tried.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kSummedBytes = 248;
    std::vector<std::uint8_t> bytes(data, data + size);
    if (bytes.size() >= kSummedBytes + sizeof(std::uint64_t)) {
        const std::uint64_t sum = checksum_bytes(std::as_bytes(std::span(bytes).first(kSummedBytes)));
        std::memcpy(bytes.data() + kSummedBytes, &sum, sizeof sum);
    }
    fuzz::read_stored(bytes.data(), bytes.size(), [](const tiling::ObjectStore& store, const Hash128& name) {
        (void)tiling::read_payload(store, name, "fuzz").splats.digest();
    });
    return 0;
}
