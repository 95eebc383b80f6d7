#pragma once

#include "core/file.hpp"
#include "io/point_file.hpp"

#include <memory>

namespace citysplat::io {

/// XYZ, PTS, ASC, TXT and CSV: one point per line. A first line of names says what the columns are; without
/// one, ReadOptions::text_columns does, or 3, 4, 6 or 7 columns are x y z [intensity] [r g b].
std::unique_ptr<PointFile> open_text_points(File file, const ReadOptions& options);

}  // namespace citysplat::io
