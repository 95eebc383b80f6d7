#pragma once

#include "core/math/vec_hd.hpp"
#include "core/output_file.hpp"
#include "tiling/store/sqlite.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace citysplat::gis {

enum class Shape { polygon, line_z };

/// A layer of a GeoPackage: features with a geometry and these columns.
struct LayerDescription {
    struct Column {
        const char* name;
        const char* type;  ///< "INTEGER", "REAL" or "TEXT"
    };
    std::string name, title;
    Shape shape = Shape::polygon;
    std::vector<Column> columns;
    std::string qml;  ///< how QGIS draws it unless told otherwise
};

using Cell = std::variant<std::int64_t, double, std::string>;

/// A GeoPackage 1.3 (OGC 12-128r18) being written. The file gets its name in finish(); until then there is
/// another one beside it, which goes away with the object. Not safe to share between threads.
class GeoPackage {
  public:
    /// `crs` is "EPSG:n", WKT, or empty: then coordinates belong to no known system. `created_s` is written
    /// where the format wants a time, so that the same content has the same bytes.
    GeoPackage(const std::filesystem::path& path, const std::string& crs, std::int64_t created_s);
    ~GeoPackage();
    GeoPackage(const GeoPackage&) = delete;
    GeoPackage& operator=(const GeoPackage&) = delete;

    /// Features that are added belong to the layer that was begun last.
    void begin_layer(const LayerDescription& layer);
    /// An axis-parallel rectangle.
    void add_box(const std::array<double, 4>& min_x_min_y_max_x_max_y, std::span<const Cell> cells);
    void add_line(std::span<const Vec3d> places, std::span<const Cell> cells);
    /// A feature without a geometry.
    void add_nowhere(std::span<const Cell> cells);
    void finish();

  private:
    void add(std::span<const std::byte> geometry, std::span<const Cell> cells);
    void add_cells(std::span<const Cell> cells);
    void grow(double x, double y);
    void end_layer();

    OutputFile out_;
    std::filesystem::path working_;
    std::unique_ptr<tiling::Database> db_;
    std::unique_ptr<tiling::Statement> insert_;
    std::string time_, layer_;
    std::int64_t srs_ = -1;
    std::optional<std::array<double, 4>> extent_;  ///< of the layer
};

}  // namespace citysplat::gis
