#pragma once

#include "core/file.hpp"
#include "io/las/las_header.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::io {

/// A run of points that is compressed on its own.
struct LazChunk {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t bytes = 0;
    std::uint64_t first_point = 0, points = 0;
};

/// Why laz-perf cannot decode a file that is otherwise sound; empty when it can. Throws InputError when the
/// LASzip record is damaged.
std::string laz_unsupported(const File& file, const LasHeader& header);

/// Is there a chunk table? Not in files of LASzip 1. Throws InputError when the LASzip record is damaged.
bool laz_is_chunked(const File& file, const LasHeader& header);

/// Checks the LASzip record of a compressed file against its header, reads the chunk table, and checks every
/// chunk to be inside the file and the chunks to hold exactly the points of the header. Throws InputError
/// naming the byte and what was expected.
std::vector<LazChunk> read_laz_chunks(const File& file, const LasHeader& header);

}  // namespace citysplat::io
