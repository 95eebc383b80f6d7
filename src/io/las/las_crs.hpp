#pragma once

#include "io/crs/crs.hpp"
#include "io/las/las_header.hpp"

namespace citysplat::io {

/// From the WKT record, or the GeoTIFF keys where there is none. Throws InputError when the keys point
/// outside their records.
Crs las_crs(const LasHeader& header, const std::string& file_name);

/// How a LAS file says its system (LASF_Projection): WKT as it is; an EPSG code as GeoTIFF keys, which every
/// reader knows, or as PROJ's WKT where it is too large for them. Nothing for a text that is no system, such
/// as the citation of another file.
struct LasCrsRecord {
    std::uint16_t id;
    std::string payload;
    bool is_wkt;  ///< bit 4 of the global encoding
};
std::optional<LasCrsRecord> las_crs_record(const std::string& crs);

}  // namespace citysplat::io
