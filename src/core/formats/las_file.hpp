#pragma once

#include "core/file.hpp"
#include "core/formats/point_file.hpp"

#include <memory>

namespace citysplat::formats {

/// LAS, and LAZ where this build can decode it. `file` starts with the signature LASF.
std::unique_ptr<PointFile> open_las(File file, const ReadOptions& options);

}  // namespace citysplat::formats
