#pragma once

#include "io/point_file.hpp"

#include <filesystem>
#include <memory>

namespace citysplat {

/// Opens any supported format by content first, name second. Throws InputError or IoError.
std::unique_ptr<PointFile> open_point_file(const std::filesystem::path& path,
                                           const ReadOptions& options = {});

}  // namespace citysplat
