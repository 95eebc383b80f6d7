#include "io/points/ply_file.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/crs/crs.hpp"
#include "io/points/binary_table.hpp"
#include "io/points/ply_header.hpp"
#include "io/points/text_table.hpp"

#include <algorithm>

namespace citysplat::io {

namespace {

/// Bytes (binary) or lines (text) of the elements in front of the vertices.
std::uint64_t size_in_front(const PlyHeader& h, const PlyElement& vertex, const std::string& name) {
    std::uint64_t sum = 0;
    for (const auto& element : h.elements) {
        if (&element == &vertex) return sum;
        if (element.list && element.count && h.data != PlyData::ascii)
            throw InputError(name + ": the element \"" + element.name +
                             "\" in front of the vertices has a list property, which is not supported; "
                             "write the vertices first");
        const auto size = checked_multiply(element.count, h.data == PlyData::ascii ? 1 : element.bytes);
        const auto total = size ? checked_add(sum, *size) : std::nullopt;
        if (!total) throw InputError(name + ": impossible number of elements \"" + element.name + "\"");
        sum = *total;
    }
    return sum;
}

const PlyElement& find_vertices(const PlyHeader& h, const std::string& name) {
    const auto vertex = std::find_if(h.elements.begin(), h.elements.end(),
                                     [](const PlyElement& e) { return e.name == "vertex"; });
    if (vertex == h.elements.end()) throw InputError(name + ": the PLY header has no element \"vertex\"");
    if (vertex->list)
        throw InputError(name + ": the vertices have a list property \"" + *vertex->list +
                         "\"; points of different sizes are not supported");
    return *vertex;
}

std::unique_ptr<PointFile> open_text_ply(File file, const PlyHeader& h, TableDecoder decoder,
                                         PointFileInfo info, const ReadOptions& options) {
    const std::string name = file.path().string();
    const PlyElement& vertex = find_vertices(h, name);
    const std::uint64_t front = size_in_front(h, vertex, name);
    std::uint64_t offset = h.bytes, line = h.lines + 1;
    if (front) {
        const TextIndex skipped = index_text(file, offset, line, front);
        if (skipped.records < front) throw InputError(name + ": ends before the vertices");
        const auto& last = skipped.blocks.back();
        offset = last.offset + last.bytes;
        line += front;
    }
    TextIndex index = index_text(file, offset, line, vertex.count);
    if (index.records < vertex.count && !options.salvage)
        throw InputError(name + ": claims " + std::to_string(vertex.count) + " vertices, but ends after " +
                         std::to_string(index.records) + "; --salvage reads what is there");
    if (&vertex == &h.elements.back()) refuse_more_lines(file, index, options.salvage);
    info.points = index.records;
    info.points_lost = vertex.count - index.records;
    return make_text_table_file(std::move(file), std::move(index), std::move(decoder), std::move(info),
                                options.salvage);
}

}  // namespace

std::unique_ptr<PointFile> open_ply(File file, const ReadOptions& options) {
    const std::string name = file.path().string();
    const PlyHeader h = read_ply_header(file);
    const PlyElement& vertex = find_vertices(h, name);
    Crs crs = crs_from_wkt(h.crs);
    crs.assign(options, name);
    TableConvention convention{.offset = h.offset};
    convention.metres_per_unit = crs.scale_to_deliver(options, name);
    TableDecoder decoder(vertex.properties, name, options, convention);
    decoder.use_labels(vertex.count);
    PointFileInfo info;
    constexpr const char* kNames[]{"PLY ascii", "PLY binary_little_endian", "PLY binary_big_endian"};
    info.format = kNames[static_cast<std::size_t>(h.data)];
    crs.describe(info);
    if (h.offset.x != 0 || h.offset.y != 0 || h.offset.z != 0)
        info.notes.push_back("coordinates are moved by the offset in the comment of the header");
    if (h.data == PlyData::ascii)
        return open_text_ply(std::move(file), h, std::move(decoder), std::move(info), options);
    const auto offset = checked_add(h.bytes, size_in_front(h, vertex, name));
    BinaryTable table{offset.value_or(UINT64_MAX), vertex.count, vertex.bytes, h.data == PlyData::big_endian};
    info.points = table.records = records_inside(file, table, options.salvage);
    if (&vertex == &h.elements.back()) refuse_more_records(file, table, options.salvage);
    info.points_lost = vertex.count - table.records;
    inspect_first_records(file, table, decoder);
    decoder.describe(info);
    return make_binary_table_file(std::move(file), table, std::move(decoder), std::move(info));
}

}  // namespace citysplat::io
