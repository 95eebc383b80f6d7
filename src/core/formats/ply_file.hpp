#pragma once

#include "core/file.hpp"
#include "core/formats/point_file.hpp"

#include <memory>

namespace citysplat::formats {

/// PLY: ascii or binary of either byte order, any order and type of vertex properties.
std::unique_ptr<PointFile> open_ply(File file, const ReadOptions& options);

}  // namespace citysplat::formats
