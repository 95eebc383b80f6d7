#pragma once

#include "core/file.hpp"
#include "io/points/table_decoder.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::io {

inline constexpr std::uint64_t kTextBlockLines = 1 << 16;

/// Where the records of a text table are: one per line, blank lines and '#' comments left out. Made by one
/// pass over the file, so that blocks can be read independently.
struct TextIndex {
    struct Block {
        std::uint64_t offset = 0, bytes = 0;
        std::uint64_t first_line = 0;  ///< in the file, from 1, for messages
        std::uint64_t records = 0;
        std::uint64_t first_record = 0;  ///< in the table, from 0
    };
    std::vector<Block> blocks;
    std::uint64_t records = 0;
    std::uint64_t end = 0;  ///< byte behind the last record
    bool ends_with_newline = true;
};

/// Indexes at most `max_records` records from byte `offset`, which is line `first_line`.
TextIndex index_text(const File& file, std::uint64_t offset, std::uint64_t first_line,
                     std::uint64_t max_records);

/// Throws InputError when records follow behind those of an index that was limited, unless under salvage.
void refuse_more_lines(const File& file, const TextIndex& index, bool salvage);

/// Numbers of one line, separated by blanks, commas or semicolons. Returns how many; throws InputError naming
/// the line when one is not a number. At most `out.size()` are stored.
std::size_t parse_row(std::string_view line, std::span<double> out, const std::string& file_name,
                      std::uint64_t line_number);

/// Reads one block of the table. Lines with too few numbers are an InputError, or damaged under salvage.
void read_text_block(const File& file, const TextIndex::Block& block, const TableDecoder& decoder,
                     bool salvage, PointBatch& out);

/// A PointFile on such records; completes `info`.
std::unique_ptr<PointFile> make_text_table_file(File file, TextIndex index, TableDecoder decoder,
                                                PointFileInfo info, bool salvage);

}  // namespace citysplat::io
