#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// PLY: ascii or binary of either byte order, any order and type of vertex properties.
std::unique_ptr<PointFile> open_ply(File file, const ReadOptions& options);

}  // namespace citysplat::io
