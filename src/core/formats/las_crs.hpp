#pragma once

#include "core/formats/crs.hpp"
#include "core/formats/las_header.hpp"

namespace citysplat::formats {

/// From the WKT record, or the GeoTIFF keys where there is none. Throws InputError when the keys point
/// outside their records.
Crs las_crs(const LasHeader& header, const std::string& file_name);

}  // namespace citysplat::formats
