#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace citysplat {

/// Where a picture from above lies in the world: square pixels, rows from north to south.
struct RasterFrame {
    double west_m = 0, north_m = 0;  ///< the outer corner of the top left pixel
    double resolution_m = 1;
    int width = 0, height = 0;
};

/// Writes the world file of a picture (NAME.pgw beside NAME.png), and its coordinate system (NAME.prj) where
/// that is known; `crs` is "EPSG:n" or WKT.
void write_frame(const std::filesystem::path& picture, const RasterFrame& frame, const std::string& crs);

/// A part of a mosaic.
struct MosaicPart {
    std::filesystem::path picture;  ///< beside the mosaic
    RasterFrame frame;
};
/// Writes a GDAL virtual raster of pictures with four channels that have one grid of pixels. Requires at
/// least one part, all of one resolution.
void write_vrt(const std::filesystem::path& path, std::span<const MosaicPart> parts, const std::string& crs);

}  // namespace citysplat
