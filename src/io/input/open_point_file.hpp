#pragma once

#include "io/point_file.hpp"

#include <filesystem>
#include <memory>

namespace citysplat {

/// Opens any supported format by content first, name second. A scan of a drive that is opened without a sweep
/// is placed by its drive; own cars are not looked for then. Throws InputError or IoError.
std::unique_ptr<PointFile> open_point_file(const std::filesystem::path& path,
                                           const ReadOptions& options = {});

/// A scan as it is in its file, whatever drive it belongs to: io::OpenScan. What is damaged is left out: that
/// is refused when the scan is read, unless the user says otherwise, not while its drive is understood.
std::unique_ptr<PointFile> open_scan_of_drive(const std::filesystem::path& path);

}  // namespace citysplat
