#include "core/error.hpp"
#include "io/las/chunk_decoder.hpp"

/// A build without the LAZ decoder: says so.
namespace citysplat::io {

bool laz_available() { return false; }

std::string laz_advice() {
    return "this build cannot read LAZ; run tools/fetch-laz-perf (needs npm and Debian's wabt), then build "
           "again";
}

void decode_laz_chunk(std::span<const std::byte>, const LazChunkLayout&, const std::string& where,
                      const std::function<void(std::span<const std::byte>)>&) {
    throw UnavailableError(where + ": " + laz_advice());
}

}  // namespace citysplat::io
