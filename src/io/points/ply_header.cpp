#include "io/points/ply_header.hpp"

#include "core/error.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <charconv>

namespace citysplat::io {

namespace {

constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;

std::optional<Scalar> scalar_of(std::string_view type) {
    constexpr std::pair<std::string_view, Scalar> kTypes[] = {
        {"char", Scalar::i8},    {"int8", Scalar::i8},    {"uchar", Scalar::u8},   {"uint8", Scalar::u8},
        {"short", Scalar::i16},  {"int16", Scalar::i16},  {"ushort", Scalar::u16}, {"uint16", Scalar::u16},
        {"int", Scalar::i32},    {"int32", Scalar::i32},  {"uint", Scalar::u32},   {"uint32", Scalar::u32},
        {"int64", Scalar::i64},  {"uint64", Scalar::u64}, {"float", Scalar::f32},  {"float32", Scalar::f32},
        {"double", Scalar::f64}, {"float64", Scalar::f64}};
    for (const auto& [name, scalar] : kTypes)
        if (name == type) return scalar;
    return std::nullopt;
}

class PlyHeaderParser {
  public:
    explicit PlyHeaderParser(const File& file) : name_(file.path().string()) {
        text_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kMaxHeaderBytes)));
        file.read_at(0, std::as_writable_bytes(std::span(text_.data(), text_.size())));
    }

    PlyHeader parse() {
        for (const Line& line : Lines(text_)) {
            if (!line.ended) break;
            line_ = line.number;
            const auto words = words_of(line.text);
            if (words.size() == 1 && words[0] == "end_header") {
                header_.bytes = line.next;
                header_.lines = line_;
                if (!header_.has_format) fail("the header has no \"format\" line");
                return std::move(header_);
            }
            if (!words.empty()) take(words);
        }
        throw InputError(name_ + ": the PLY header has no \"end_header\" within its first " +
                         std::to_string(text_.size()) + " bytes");
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(name_ + ": line " + std::to_string(line_) + ": " + what);
    }

    void take(const std::vector<std::string_view>& words) {
        if (words[0] == "format")
            take_format(words);
        else if (words[0] == "element")
            take_element(words);
        else if (words[0] == "property")
            take_property(words);
        else if (words[0] == "comment" || words[0] == "obj_info")
            take_comment(words);
        else if (line_ != 1 || words[0] != "ply")
            fail("\"" + std::string(words[0].substr(0, 40)) + "\" is not a keyword of a PLY header");
    }

    void take_format(const std::vector<std::string_view>& words) {
        if (header_.has_format) fail("a second \"format\" line");
        if (words.size() != 3) fail("expected \"format KIND 1.0\"");
        const std::string_view kind = words[1];
        if (kind == "ascii")
            header_.data = PlyData::ascii;
        else if (kind == "binary_little_endian")
            header_.data = PlyData::little_endian;
        else if (kind == "binary_big_endian")
            header_.data = PlyData::big_endian;
        else
            fail("format \"" + std::string(kind.substr(0, 40)) +
                 "\"; expected ascii, binary_little_endian or binary_big_endian");
        if (words[2] != "1.0")
            fail("PLY version " + std::string(words[2].substr(0, 40)) + " is not known; expected 1.0");
        header_.has_format = true;
    }

    void take_element(const std::vector<std::string_view>& words) {
        // Whether a property has a place in bytes or in numbers depends on the format.
        if (!header_.has_format) fail("an element in front of the \"format\" line");
        if (words.size() != 3) fail("expected \"element NAME COUNT\"");
        PlyElement element{std::string(words[1]), 0, {}, 0, {}, {}};
        const std::string_view count = words[2];
        const auto [end, ec] = std::from_chars(count.data(), count.data() + count.size(), element.count);
        if (ec != std::errc() || end != count.data() + count.size())
            fail("\"" + std::string(count.substr(0, 40)) + "\" is not a number of elements");
        for (const PlyElement& other : header_.elements)
            if (other.name == element.name) fail("the element \"" + element.name + "\" is there twice");
        header_.elements.push_back(std::move(element));
    }

    void take_property(const std::vector<std::string_view>& words) {
        if (header_.elements.empty()) fail("a property before any element");
        PlyElement& element = header_.elements.back();
        if (words.size() == 5 && words[1] == "list") {
            if (!scalar_of(words[2]) || !scalar_of(words[3])) fail("unknown type of a list property");
            element.list = std::string(words[4]);
            element.all.push_back({*element.list, *scalar_of(words[3]), scalar_of(words[2])});
            return;
        }
        if (words.size() != 3) fail("expected \"property TYPE NAME\"");
        const auto type = scalar_of(words[1]);
        if (!type) fail("property type \"" + std::string(words[1].substr(0, 40)) + "\" is not known");
        const std::size_t at = header_.data == PlyData::ascii ? element.properties.size() : element.bytes;
        element.properties.push_back({std::string(words[2]), *type, at});
        element.all.push_back({std::string(words[2]), *type, std::nullopt});
        element.bytes += bytes_of(*type);
    }

    /// "comment offset Pos X Y Z": origin of the coordinates; "comment crs WKT": as we write it.
    void take_comment(const std::vector<std::string_view>& words) {
        if (words.size() >= 5 && (words[1] == "offset" || words[1] == "Offset")) {
            double v[3];
            bool good = true;
            for (std::size_t i = 0; i < 3; ++i) {
                const std::string_view w = words[words.size() - 3 + i];
                const auto [end, ec] = std::from_chars(w.data(), w.data() + w.size(), v[i]);
                good = good && ec == std::errc() && end == w.data() + w.size();
            }
            if (good) header_.offset = {v[0], v[1], v[2]};
        }
        if (words.size() >= 3 && words[1] == "crs") {
            const char* begin = words[2].data();
            header_.crs = std::string(
                begin, static_cast<std::size_t>(words.back().data() + words.back().size() - begin));
        }
    }

    std::string name_;
    std::string text_;
    PlyHeader header_;
    std::uint64_t line_ = 0;
};

}  // namespace

PlyHeader read_ply_header(const File& file) { return PlyHeaderParser(file).parse(); }

}  // namespace citysplat::io
