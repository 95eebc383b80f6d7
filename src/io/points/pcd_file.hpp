#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// PCD 0.5–0.7: ascii, binary, binary_compressed.
std::unique_ptr<PointFile> open_pcd(File file, const ReadOptions& options);

}  // namespace citysplat::io
