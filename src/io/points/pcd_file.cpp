#include "io/points/pcd_file.hpp"

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/bytes_le.hpp"
#include "io/crs/crs.hpp"
#include "io/points/binary_table.hpp"
#include "io/points/lzf.hpp"
#include "io/points/text_table.hpp"

#include <algorithm>
#include <charconv>

namespace citysplat::io {

namespace {

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

enum class PcdData { ascii, binary, compressed };

struct PcdHeader {
    std::vector<std::string> fields, types;
    std::vector<std::uint64_t> sizes, counts;
    std::uint64_t width = 0, height = 1, points = 0;
    bool has_width = false, has_points = false;
    std::vector<double> viewpoint;
    PcdData data = PcdData::ascii;
    std::uint64_t bytes = 0, lines = 0;
    std::vector<Column> columns;  ///< single values; fields with COUNT > 1 give several
    std::size_t stride = 0;
};

class PcdHeaderParser {
  public:
    explicit PcdHeaderParser(const File& file) : name_(file.path().string()) {
        text_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kMaxHeaderBytes)));
        file.read_at(0, std::as_writable_bytes(std::span(text_.data(), text_.size())));
    }

    PcdHeader parse() {
        for (const Line& line : Lines(text_)) {
            if (!line.ended) break;
            line_ = line.number;
            const auto words = words_of(line.text);
            if (words.empty() || words[0][0] == '#') continue;
            if (take(std::string(words[0]), {words.begin() + 1, words.end()})) {
                h_.bytes = line.next;
                h_.lines = line_;
                complete();
                return std::move(h_);
            }
        }
        throw InputError(name_ + ": no PCD header: no DATA line within the first " +
                         std::to_string(text_.size()) + " bytes");
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(name_ + ": line " + std::to_string(line_) + ": " + what);
    }

    std::uint64_t whole(const std::string& key, const std::string& word) const {
        std::uint64_t v = 0;
        const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), v);
        if (ec != std::errc() || end != word.data() + word.size())
            fail(key + " \"" + word.substr(0, 40) + "\" is not a whole number");
        return v;
    }

    /// True for the last line, DATA.
    bool take(const std::string& key, const std::vector<std::string>& words) {
        const auto one = [&] {
            if (words.size() != 1) fail(key + " needs one value");
            return words[0];
        };
        if (key == "VERSION") {
            take_version(one());
        } else if (key == "FIELDS" || key == "COLUMNS") {
            h_.fields = words;
        } else if (key == "TYPE") {
            h_.types = words;
        } else if (key == "SIZE" || key == "COUNT") {
            for (const auto& w : words) (key == "SIZE" ? h_.sizes : h_.counts).push_back(whole(key, w));
        } else if (key == "WIDTH") {
            h_.width = whole(key, one());
            h_.has_width = true;
        } else if (key == "HEIGHT") {
            h_.height = whole(key, one());
        } else if (key == "POINTS") {
            h_.points = whole(key, one());
            h_.has_points = true;
        } else if (key == "VIEWPOINT") {
            h_.viewpoint.resize(7);
            std::string line;
            for (const auto& w : words) line += w + " ";
            if (parse_row(line, h_.viewpoint, name_, line_) != 7) fail("VIEWPOINT needs 7 numbers");
        } else if (key == "DATA") {
            take_data(one());
            return true;
        } else {
            fail("\"" + key.substr(0, 40) + "\" is not a line of a PCD header");
        }
        return false;
    }

    void take_version(const std::string& version) const {
        for (const std::string_view known : {"0.7", ".7", "0.6", ".6", "0.5", ".5"})
            if (version == known) return;
        fail("VERSION " + version.substr(0, 40) + " is not known; expected 0.5 to 0.7");
    }

    void take_data(const std::string& kind) {
        if (kind == "ascii")
            h_.data = PcdData::ascii;
        else if (kind == "binary")
            h_.data = PcdData::binary;
        else if (kind == "binary_compressed")
            h_.data = PcdData::compressed;
        else
            fail("DATA \"" + kind.substr(0, 40) + "\"; expected ascii, binary or binary_compressed");
    }

    void complete() {
        if (h_.fields.empty()) fail("the header has no FIELDS");
        if (!h_.has_width) fail("the header has no WIDTH");
        if (h_.counts.empty()) h_.counts.assign(h_.fields.size(), 1);
        if (h_.sizes.size() != h_.fields.size() || h_.types.size() != h_.fields.size() ||
            h_.counts.size() != h_.fields.size())
            fail("FIELDS names " + std::to_string(h_.fields.size()) + " columns, SIZE " +
                 std::to_string(h_.sizes.size()) + ", TYPE " + std::to_string(h_.types.size()) + ", COUNT " +
                 std::to_string(h_.counts.size()));
        const auto product = checked_multiply(h_.width, h_.height);
        if (!product)
            fail("WIDTH " + std::to_string(h_.width) + " × HEIGHT " + std::to_string(h_.height) +
                 " is impossible");
        if (!h_.has_points) h_.points = *product;
        if (*product != h_.points)
            fail("POINTS " + std::to_string(h_.points) + ", but WIDTH × HEIGHT is " +
                 std::to_string(*product));
        for (std::size_t i = 0; i < h_.fields.size(); ++i) add_columns(i);
    }

    void add_columns(std::size_t field) {
        const Scalar type = scalar_of(h_.types[field], h_.sizes[field]);
        if (h_.counts[field] > 65536) fail("COUNT " + std::to_string(h_.counts[field]) + " is impossible");
        for (std::uint64_t k = 0; k < h_.counts[field]; ++k) {
            std::string name = h_.fields[field];
            if (h_.counts[field] > 1) name += "[" + std::to_string(k) + "]";
            const std::size_t at = h_.data == PcdData::ascii ? h_.columns.size() : h_.stride;
            h_.columns.push_back({std::move(name), type, at});
            h_.stride += bytes_of(type);
        }
        if (h_.stride > std::size_t{1} << 20) fail("points of more than 1 MiB are impossible");
    }

    Scalar scalar_of(const std::string& type, std::uint64_t size) const {
        const std::string key = type + std::to_string(size);
        constexpr std::pair<std::string_view, Scalar> kTypes[] = {
            {"I1", Scalar::i8},  {"U1", Scalar::u8},  {"I2", Scalar::i16}, {"U2", Scalar::u16},
            {"I4", Scalar::i32}, {"U4", Scalar::u32}, {"I8", Scalar::i64}, {"U8", Scalar::u64},
            {"F4", Scalar::f32}, {"F8", Scalar::f64}};
        for (const auto& [known, scalar] : kTypes)
            if (known == key) return scalar;
        fail("TYPE " + type.substr(0, 10) + " with SIZE " + std::to_string(size) + " is not known");
    }

    std::string name_, text_;
    PcdHeader h_;
    std::uint64_t line_ = 0;
};

/// All columns one behind the other, compressed as one piece: one block.
class CompressedPcdFile : public PointFile {
  public:
    CompressedPcdFile(File file, const PcdHeader& h, std::uint32_t packed, TableDecoder decoder,
                      PointFileInfo info)
        : file_(std::move(file)),
          header_(h),
          packed_bytes_(packed),
          decoder_(std::move(decoder)),
          info_(std::move(info)) {}

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return header_.points > 0; }
    void read_block(std::size_t, PointBatch& out) const override {
        const std::vector<std::byte> plain = decompress(file_, header_, packed_bytes_);
        decoder_.begin(out, static_cast<std::size_t>(header_.points));
        std::size_t at = 0;
        for (std::size_t c = 0; c < header_.columns.size(); ++c) {
            const std::size_t bytes =
                bytes_of(header_.columns[c].type) * static_cast<std::size_t>(header_.points);
            decoder_.decode_column(c, std::span(plain).subspan(at, bytes), out);
            at += bytes;
        }
        decoder_.finish(0, out);
    }

    static std::vector<std::byte> decompress(const File& file, const PcdHeader& h,
                                             std::uint32_t packed_bytes) {
        std::vector<std::byte> packed(packed_bytes);
        file.read_at(h.bytes + 8, packed);
        std::vector<std::byte> plain(h.stride * static_cast<std::size_t>(h.points));
        if (!lzf_decompress(packed, plain))
            throw InputError(file.path().string() + ": the compressed data at byte " +
                             std::to_string(h.bytes + 8) + " is damaged: it does not give " +
                             std::to_string(plain.size()) + " bytes");
        return plain;
    }

  private:
    File file_;
    PcdHeader header_;
    std::uint32_t packed_bytes_;
    TableDecoder decoder_;
    PointFileInfo info_;
};

std::unique_ptr<PointFile> open_compressed(File file, const PcdHeader& h, TableDecoder decoder,
                                           PointFileInfo info) {
    const std::string name = file.path().string();
    std::byte sizes[8];
    file.read_at(h.bytes, sizes);
    const std::uint32_t packed = load_le<std::uint32_t>(sizes), plain = load_le<std::uint32_t>(sizes + 4);
    if (!fits(h.bytes + 8, packed, file.size()))
        throw InputError(name + ": byte " + std::to_string(h.bytes) + ": claims " + std::to_string(packed) +
                         " compressed bytes, but ends after " + std::to_string(file.size() - h.bytes - 8));
    const auto expected = checked_multiply(h.points, h.stride);
    if (!expected || *expected != plain)
        throw InputError(name + ": byte " + std::to_string(h.bytes + 4) + ": claims " +
                         std::to_string(plain) + " bytes after decompression; the header asks for " +
                         std::to_string(h.points) + " points of " + std::to_string(h.stride) + " bytes");
    // LZF makes at most 264 bytes out of 3.
    if (plain / 88 > packed)
        throw InputError(name + ": " + std::to_string(packed) + " compressed bytes cannot hold " +
                         std::to_string(plain));
    if (decoder.wants_intensity_sample() && h.points) {
        const std::vector<std::byte> bytes = CompressedPcdFile::decompress(file, h, packed);
        const std::size_t column = decoder.column_index(Role::intensity);
        const auto n = static_cast<std::size_t>(h.points);
        std::vector<double> sample;
        for (std::size_t i = 0; i < std::min<std::size_t>(n, 65536); ++i) {
            const std::byte* at = bytes.data() + h.columns[column].at * n;
            sample.push_back(h.columns[column].type == Scalar::f32
                                 ? static_cast<double>(load_le<float>(at + 4 * i))
                                 : load_le<double>(at + 8 * i));
        }
        decoder.choose_intensity_range(sample);
    }
    decoder.describe(info);
    return std::make_unique<CompressedPcdFile>(std::move(file), h, packed, std::move(decoder),
                                               std::move(info));
}

TableConvention convention_of(const PcdHeader& h, PointFileInfo& info) {
    TableConvention convention{.nan_is_no_return = true};
    if (h.viewpoint.size() != 7) return convention;
    const auto& v = h.viewpoint;
    const bool moved = v[0] != 0 || v[1] != 0 || v[2] != 0, turned = v[4] != 0 || v[5] != 0 || v[6] != 0;
    if (moved) convention.constant_sensor = Vec3d{v[0], v[1], v[2]};
    if (turned) info.notes.push_back("VIEWPOINT has a rotation, which is not applied to the points");
    return convention;
}

}  // namespace

std::unique_ptr<PointFile> open_pcd(File file, const ReadOptions& options) {
    const std::string name = file.path().string();
    const PcdHeader h = PcdHeaderParser(file).parse();
    constexpr const char* kNames[]{"PCD ascii", "PCD binary", "PCD binary_compressed"};
    PointFileInfo info;
    info.format = kNames[static_cast<std::size_t>(h.data)];
    info.points = h.points;
    Crs crs;
    crs.assign(options, name);
    TableConvention convention = convention_of(h, info);
    convention.metres_per_unit = crs.scale_to_deliver(options, name);
    crs.describe(info);
    TableDecoder decoder(h.columns, name, options, convention);
    decoder.use_labels(h.points);
    if (h.data == PcdData::compressed)
        return open_compressed(std::move(file), h, std::move(decoder), std::move(info));
    if (h.data == PcdData::ascii) {
        TextIndex index = index_text(file, h.bytes, h.lines + 1, h.points);
        if (index.records < h.points && !options.salvage)
            throw InputError(name + ": claims " + std::to_string(h.points) + " points, but ends after " +
                             std::to_string(index.records) + "; --salvage reads what is there");
        refuse_more_lines(file, index, options.salvage);
        info.points = index.records;
        info.points_lost = h.points - index.records;
        return make_text_table_file(std::move(file), std::move(index), std::move(decoder), std::move(info),
                                    options.salvage);
    }
    BinaryTable table{h.bytes, h.points, h.stride, false};
    info.points = table.records = records_inside(file, table, options.salvage);
    refuse_more_records(file, table, options.salvage);
    info.points_lost = h.points - table.records;
    inspect_first_records(file, table, decoder);
    decoder.describe(info);
    return make_binary_table_file(std::move(file), table, std::move(decoder), std::move(info));
}

}  // namespace citysplat::io
