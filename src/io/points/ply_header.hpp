#pragma once

#include "core/file.hpp"
#include "io/points/table_decoder.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::io {

enum class PlyData { ascii, little_endian, big_endian };

struct PlyProperty {
    std::string name;
    Scalar type;                  ///< of the value, or of the items of a list
    std::optional<Scalar> count;  ///< lists: type of the number of items in front of them
};

struct PlyElement {
    std::string name;
    std::uint64_t count = 0;
    std::vector<Column> properties;  ///< `at`: byte in the record, or number in a line
    std::size_t bytes = 0;
    std::optional<std::string> list;  ///< name of a list property, if there is one
    std::vector<PlyProperty> all;     ///< scalars and lists, in the order of the file
};

struct PlyHeader {
    PlyData data = PlyData::ascii;
    bool has_format = false;
    std::vector<PlyElement> elements;
    Vec3d offset{0, 0, 0};  ///< in the unit of the coordinates
    std::string crs;
    std::uint64_t bytes = 0, lines = 0;
};

/// Throws InputError naming the file and the line.
PlyHeader read_ply_header(const File& file);

}  // namespace citysplat::io
