#pragma once

#include "core/file.hpp"
#include "io/points/table_decoder.hpp"

#include <memory>

namespace citysplat::io {

/// Records of a fixed size one behind the other, checked to be inside the file.
struct BinaryTable {
    std::uint64_t offset = 0;
    std::uint64_t records = 0;
    std::size_t stride = 0;
    bool big_endian = false;
};

/// Points of a block; the last one may have fewer.
inline constexpr std::uint64_t kBlockRecords = 1 << 16;

/// Decides the scale of intensity and refuses data of the other byte order, by the first records.
void inspect_first_records(const File& file, const BinaryTable& table, TableDecoder& decoder);

/// A PointFile on such records.
std::unique_ptr<PointFile> make_binary_table_file(File file, const BinaryTable& table, TableDecoder decoder,
                                                  PointFileInfo info);

/// How many of `records` records of `stride` bytes at `offset` are inside the file. Fewer is an InputError
/// unless `salvage`.
std::uint64_t records_inside(const File& file, const BinaryTable& table, bool salvage);
/// Throws InputError when the file goes on for a whole record or more behind the last, unless under salvage.
/// Requires what records_inside() made sure of.
void refuse_more_records(const File& file, const BinaryTable& table, bool salvage);

}  // namespace citysplat::io
