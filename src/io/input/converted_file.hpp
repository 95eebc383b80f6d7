#pragma once

#include "io/point_file.hpp"

#include <memory>
#include <string>

namespace citysplat::io {

/// The points of a file in the system `options.to_crs`, which must be in metres; a file that is in it already
/// is left alone. Requires that `file` was opened with its units as they are. Heights become metres and are
/// not moved otherwise. Throws InputError when the file does not say its system.
std::unique_ptr<PointFile> in_other_crs(std::unique_ptr<PointFile> file, const ReadOptions& options,
                                        const std::string& file_name);

}  // namespace citysplat::io
