#pragma once

#include "core/math/vec_hd.hpp"
#include "io/point_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace citysplat::io {

/// What a file says about its coordinate reference system, completed by what PROJ knows (known_crs.hpp). We
/// do not reproject; we must know the unit, and that two files speak of the same system.
struct Crs {
    std::string text;  ///< WKT, or "EPSG:n"; empty: the file does not say
    std::string name;
    int epsg = 0;  ///< 0: not known
    bool geographic = false;
    std::string unit = "metre";
    double metres_per_unit = 1.0;           ///< 0 for degrees
    double vertical_metres_per_unit = 1.0;  ///< of heights
    std::vector<std::string> notes;

    /// For people: name and code, or the beginning of the text.
    std::string label() const;
    /// Copies all of this into the info of a file.
    void describe(PointFileInfo& info) const;
    /// Factors from file units to what the caller wants; where they are not 1, the system becomes a local one
    /// in metres. Throws InputError when `options` refuse the unit.
    Vec3d scale_to_deliver(const ReadOptions& options, const std::string& file_name);
    /// Fills in an assigned system where the file does not say.
    void assign(const ReadOptions& options, const std::string& file_name);
};

/// Reads WKT 1 or 2. Never throws: what is not understood leaves the unit at metres with a note.
Crs crs_from_wkt(std::string_view wkt);
/// The system of a code. Never throws: one that PROJ does not know is in metres, with a note.
Crs crs_from_epsg(int code);
/// "EPSG:2154", or WKT. Throws UsageError when that is not a system.
Crs crs_from_text(std::string_view text);
/// Do two texts of PointFileInfo::crs, EPSG codes or WKT, mean the same system?
bool same_crs(const std::string& a, const std::string& b);

}  // namespace citysplat::io
