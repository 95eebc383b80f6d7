#pragma once

#include "citysplat/types.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::api {
inline namespace v1 {

/// What `citysplat build` is told (docs/cli.md); what is left empty stays as the city has it.
struct BuildOptions {
    std::vector<std::string> inputs;  ///< files, folders, patterns or @lists
    std::filesystem::path trajectory;
    std::string classes;  ///< name or file of a class map
    std::string method;   ///< basic, adaptive, descriptors or surfels
    std::string crs;      ///< of inputs that do not say
    std::int64_t tile_size_m = 0;
    std::uint64_t memory_bytes = std::uint64_t{4} << 30;
    int threads = 0;               ///< 0: all
    std::filesystem::path tracks;  ///< points in the moving boxes of these tracks are left out
};

struct BuildResult {
    std::int64_t generation = 0;
    bool published = false;  ///< false: there was nothing to do
    std::uint64_t points = 0, splats = 0, tiles = 0, tiles_built = 0;
    std::string digest;
    std::vector<std::string> warnings;
};

/// Creates a city, or brings it up to date.
BuildResult build(const std::filesystem::path& city, const BuildOptions& options);

}  // namespace v1
}  // namespace citysplat::api
