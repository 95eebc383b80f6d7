#pragma once

#include "tiling/store/catalog.hpp"

#include <filesystem>
#include <span>

namespace citysplat::tiling {

/// Makes a catalog at a path that does not exist, with these generations of another one and nothing else. The
/// numbers of sources and products may differ; what the generations say does not. Requires that the rows are
/// sorted by number.
void copy_generations(Catalog& from, std::span<const GenerationRow> generations,
                      const std::filesystem::path& path);

}  // namespace citysplat::tiling
