#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "model/tile_source.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace citysplat::io {

enum class ExportFormat {
    ply,       ///< one vertex per splat: centre, normal, radius and attributes
    gaussian,  ///< PLY as 2-D Gaussian splatting viewers read it: x y z, f_dc, opacity, scale_0/1, rot
    las,       ///< centres as points, radius and normal as extra bytes
    plain_las  ///< centres as points and nothing else; labels above 255 become 0
};
/// "ply", "2dgs" or "las". Throws UsageError.
ExportFormat export_format_from(const std::string& name);

/// Writes all splats of a city into one file, tile by tile, that appears when it is whole. Returns their
/// number.
std::uint64_t export_splats(const TileSource& city, ExportFormat format, const std::filesystem::path& path,
                            const CancelToken& cancel, Progress& progress);

}  // namespace citysplat::io
