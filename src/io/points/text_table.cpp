#include "io/points/text_table.hpp"

#include "core/error.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace citysplat::io {

namespace {

constexpr std::size_t kScanBytes = std::size_t{1} << 20;

bool is_separator(char c) { return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r'; }

/// First character of a line that is no blank: 0 for a blank line.
char first_character(std::string_view line) {
    for (const char c : line)
        if (c != ' ' && c != '\t' && c != '\r') return c;
    return 0;
}

bool is_record(std::string_view line) {
    const char c = first_character(line);
    return c != 0 && c != '#';
}

std::string read_range(const File& file, std::uint64_t offset, std::uint64_t bytes) {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    file.read_at(offset, std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
}

[[noreturn]] void fail(const std::string& file_name, std::uint64_t line, const std::string& what) {
    throw InputError(file_name + ": line " + std::to_string(line) + ": " + what);
}

class TextTableFile : public PointFile {
  public:
    TextTableFile(File file, TextIndex index, TableDecoder decoder, PointFileInfo info, bool salvage)
        : file_(std::move(file)),
          index_(std::move(index)),
          decoder_(std::move(decoder)),
          info_(std::move(info)),
          salvage_(salvage) {}

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return index_.blocks.size(); }
    void read_block(std::size_t i, PointBatch& out) const override {
        read_text_block(file_, index_.blocks[i], decoder_, salvage_, out);
    }

  private:
    File file_;
    TextIndex index_;
    TableDecoder decoder_;
    PointFileInfo info_;
    bool salvage_;
};

/// Values of one column of the first block.
std::vector<double> sample_column(const File& file, const TextIndex& index, std::size_t column,
                                  std::size_t columns) {
    std::vector<double> sample, row(columns);
    if (index.blocks.empty()) return sample;
    const auto& block = index.blocks.front();
    const std::string text = read_range(file, block.offset, block.bytes);
    for (const auto& [line, number, next, ended] : Lines(text, block.first_line)) {
        if (!is_record(line)) continue;
        try {
            if (parse_row(line, row, file.path().string(), number) > column) sample.push_back(row[column]);
        } catch (const InputError&) {
            // The block itself will be read later, and complain then.
        }
    }
    return sample;
}

}  // namespace

TextIndex index_text(const File& file, std::uint64_t offset, std::uint64_t first_line,
                     std::uint64_t max_records) {
    TextIndex index;
    index.end = offset;
    const std::uint64_t size = file.size();
    std::string buffer;  // always begins at a line
    std::uint64_t at = offset, line_number = first_line;
    TextIndex::Block block{offset, 0, first_line, 0, 0};
    while (at < size && index.records < max_records) {
        const std::uint64_t now = std::min<std::uint64_t>(size - at, std::max(kScanBytes, 2 * buffer.size()));
        buffer = read_range(file, at, now);
        const bool last = at + now == size;
        std::size_t used = buffer.rfind('\n');
        if (used == std::string::npos) {
            if (!last) continue;  // a longer line than the buffer: read more
            used = buffer.size() - 1;
        }
        if (last && buffer.back() != '\n') index.ends_with_newline = false, used = buffer.size() - 1;
        for (const Line& line : Lines(std::string_view(buffer).substr(0, used + 1), line_number)) {
            ++line_number;
            if (!is_record(line.text)) continue;
            ++block.records;
            ++index.records;
            index.end = at + line.next;
            if (block.records == kTextBlockLines || index.records == max_records) {
                block.bytes = index.end - block.offset;
                index.blocks.push_back(block);
                block = {index.end, 0, line_number, 0, index.records};
            }
            if (index.records == max_records) break;
        }
        at += used + 1;
        buffer.clear();
    }
    if (block.records) {
        block.bytes = size - block.offset;
        index.blocks.push_back(block);
    }
    return index;
}

void refuse_more_lines(const File& file, const TextIndex& index, bool salvage) {
    if (salvage || index_text(file, index.end, 1, 1).records == 0) return;
    throw InputError(file.path().string() + ": claims " + std::to_string(index.records) +
                     " points, but more follow at byte " + std::to_string(index.end) +
                     "; --salvage leaves them out");
}

std::size_t parse_row(std::string_view line, std::span<double> out, const std::string& file_name,
                      std::uint64_t line_number) {
    const char *p = line.data(), *stop = p + line.size();
    std::size_t n = 0;
    while (true) {
        while (p < stop && is_separator(*p)) ++p;
        if (p == stop) return n;
        if (*p == '+') ++p;
        double value = 0;
        const auto [next, ec] = std::from_chars(p, stop, value);
        if (ec != std::errc() || (next < stop && !is_separator(*next))) {
            const char* end = p;
            while (end < stop && !is_separator(*end)) ++end;
            fail(file_name, line_number,
                 "\"" + std::string(p, std::min(end, p + 40)) + "\" is not a " +
                     (ec == std::errc::result_out_of_range ? "representable number" : "number"));
        }
        if (n < out.size()) out[n] = value;
        ++n;
        p = next;
    }
}

void read_text_block(const File& file, const TextIndex::Block& block, const TableDecoder& decoder,
                     bool salvage, PointBatch& out) {
    const std::string text = read_range(file, block.offset, block.bytes);
    const std::string name = file.path().string();
    const std::size_t columns = decoder.columns().size();
    std::vector<double> row(columns);
    decoder.begin(out, static_cast<std::size_t>(block.records));
    std::size_t i = 0;
    for (const auto& [line, number, next, ended] : Lines(text, block.first_line)) {
        if (!is_record(line)) continue;
        try {
            const std::size_t got = parse_row(line, row, name, number);
            if (got != columns)
                fail(name, number,
                     std::to_string(got) + " numbers; expected " + std::to_string(columns) +
                         " (is the decimal separator a comma?)");
            if (const auto problem = decoder.misfit(row)) fail(name, number, *problem);
        } catch (const InputError&) {
            if (!salvage) throw;
            std::fill(row.begin(), row.end(), std::numeric_limits<double>::infinity());
        }
        decoder.decode_row(row, out, i);
        if (++i == block.records) break;
    }
    decoder.finish(block.first_record, out);
}

std::unique_ptr<PointFile> make_text_table_file(File file, TextIndex index, TableDecoder decoder,
                                                PointFileInfo info, bool salvage) {
    if (decoder.wants_intensity_sample())
        decoder.choose_intensity_range(
            sample_column(file, index, decoder.column_at(Role::intensity), decoder.columns().size()));
    decoder.describe(info);
    return std::make_unique<TextTableFile>(std::move(file), std::move(index), std::move(decoder),
                                           std::move(info), salvage);
}

}  // namespace citysplat::io
