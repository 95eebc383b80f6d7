#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// LAS, and LAZ where this build can decode it. `file` starts with the signature LASF.
std::unique_ptr<PointFile> open_las(File file, const ReadOptions& options);

}  // namespace citysplat::io
