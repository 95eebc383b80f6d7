#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/mesh/mesh_builder.hpp"
#include "io/mesh/mesh_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

/// Wavefront OBJ: v, f, usemtl and mtllib are read; lines that say nothing about triangles are left out.
namespace citysplat::io {

namespace {

/// What shading, grouping and drawing need.
constexpr std::array<std::string_view, 16> kOther{
    "vt",       "vn",       "vp",  "g",      "o",      "s",          "mg",        "bevel",
    "c_interp", "d_interp", "lod", "usemap", "maplib", "shadow_obj", "trace_obj", "call"};
constexpr std::array<std::string_view, 8> kCurves{"cstype", "deg",  "bmat", "step",
                                                  "curv",   "surf", "parm", "curv2"};

std::string in_quotes(std::string_view text) { return "\"" + printable(text.substr(0, 60)) + "\""; }

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Everything behind the first word, without blanks at the ends: names may contain blanks.
std::string_view behind_keyword(std::string_view line) {
    line = trimmed(line);
    const std::size_t end = line.find_first_of(kBlanks);
    return end == std::string_view::npos ? std::string_view() : trimmed(line.substr(end));
}

class ObjParser {
  public:
    ObjParser(const std::string& name, const OpenLibrary& open) : name_(name), open_(open), mesh_(name) {}

    MeshFile parse(std::string_view text) {
        std::string joined;  // of lines that end with a backslash
        for (const Line& line : Lines(text)) {
            place_.number = line.number;
            std::string_view now = trimmed(line.text);
            if (now.ends_with('\\')) {
                joined += std::string(now.substr(0, now.size() - 1)) + " ";
                if (joined.size() > kMostLineBytes) fail("a line of more than a megabyte");
                continue;
            }
            if (!joined.empty()) now = joined += now;
            take(now.substr(0, now.find('#')));
            joined.clear();
        }
        if (!joined.empty()) fail("the file ends in the middle of a line");
        if (lines_) mesh_.note(format_count(lines_) + " points and lines are left out");
        for (const std::string& missing : missing_)
            mesh_.note("the library of materials " + in_quotes(missing) +
                       " is not beside the file: its materials have names, but no reflectance");
        return std::move(mesh_).finish();
    }

  private:
    static constexpr std::size_t kMostLineBytes = std::size_t{1} << 20, kMostLibraries = 1000;

    [[noreturn]] void fail(const std::string& what) const { throw InputError(place_.text() + ": " + what); }

    void take(std::string_view line) {
        const auto words = words_of(line);
        if (words.empty()) return;
        const std::string_view key = words[0];
        if (key == "v")
            take_vertex(words);
        else if (key == "f" || key == "fo")
            take_face(words);
        else if (key == "usemtl")
            material_ = std::string(behind_keyword(line));
        else if (key == "mtllib")
            take_library(line, words);
        else if (key == "l" || key == "p")
            ++lines_;
        else if (is_one_of(key, kCurves))
            fail("curves and surfaces (" + in_quotes(key) + ") are not supported; export triangles");
        else if (!is_one_of(key, kOther))
            fail(in_quotes(key) + " is not a keyword of an OBJ file");
    }

    double number(std::string_view word) const {
        const auto value = parse_number(word);
        if (!value) fail(in_quotes(word) + " is not a number");
        return *value;
    }

    /// x y z, then nothing, a weight, or a colour.
    void take_vertex(const std::vector<std::string_view>& words) {
        if (words.size() < 4 || words.size() > 8)
            fail("a vertex with " + std::to_string(words.size() - 1) + " numbers; expected 3");
        for (std::size_t i = 4; i < words.size(); ++i) number(words[i]);
        if (words.size() == 5 && number(words[4]) != 1) fail("a weight other than 1 is not supported");
        mesh_.vertex({number(words[1]), number(words[2]), number(words[3])}, place_);
    }

    /// "7", "7/1", "7//3" or "7/1/3"; negative numbers count back from the last vertex before this line.
    std::uint32_t corner(std::string_view word) const {
        const auto vertex = parse_whole<std::int64_t>(word.substr(0, word.find('/')));
        const auto count = static_cast<std::int64_t>(mesh_.vertices());
        if (!vertex || *vertex == 0 || *vertex > count || *vertex < -count)
            fail(in_quotes(word) + " is not one of the " + std::to_string(count) + " vertices before it");
        return static_cast<std::uint32_t>(*vertex > 0 ? *vertex - 1 : count + *vertex);
    }

    void take_face(const std::vector<std::string_view>& words) {
        corners_.clear();
        for (std::size_t i = 1; i < words.size(); ++i) corners_.push_back(corner(words[i]));
        if (!known_ || *known_ != material_) {
            const auto found = library_.find(material_);
            if (found == library_.end() && !material_.empty() && missing_.empty() && libraries_ > 0)
                fail("no library of materials before it has the material " + in_quotes(material_));
            number_ =
                mesh_.material(material_, found == library_.end() ? std::nullopt : found->second, place_);
            known_ = material_;
        }
        mesh_.polygon(corners_, number_, place_);
    }

    void take_library(std::string_view line, const std::vector<std::string_view>& words) {
        asked_ += words.size() - 1;
        if (asked_ > kMostLibraries)
            fail("more than " + format_count(kMostLibraries) + " libraries of materials");
        // One name with blanks, or several names.
        if (const auto text = open_(std::string(behind_keyword(line)))) {
            read_library(*text, std::string(behind_keyword(line)));
            return;
        }
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::string library(words[i]);
            if (const auto text = open_(library))
                read_library(*text, library);
            else
                missing_.push_back(library);
        }
    }

    void read_library(const std::string& text, const std::string& library) {
        ++libraries_;
        std::string material;
        for (const Line& line : Lines(text)) {
            const auto words = words_of(line.text.substr(0, line.text.find('#')));
            if (words.empty()) continue;
            const auto bad = [&](const std::string& what) {
                return InputError(library + " (of " + name_ + "): line " + std::to_string(line.number) +
                                  ": " + what);
            };
            if (words[0] == "newmtl") {
                material = std::string(behind_keyword(line.text.substr(0, line.text.find('#'))));
                if (library_.size() >= kMostMaterials) throw bad("too many materials");
                library_.emplace(material, std::nullopt);
            } else if (words[0] == "Kd" && words.size() == 4 && words[1] != "spectral") {
                if (material.empty()) throw bad("a colour before any \"newmtl\"");
                double luminance = 0;
                constexpr double kShare[3]{0.2126, 0.7152, 0.0722};
                for (std::size_t i = 0; i < 3; ++i) {
                    const auto v = parse_number(words[i + 1]);
                    if (!v || !(*v >= 0 && *v <= 1))
                        throw bad(in_quotes(words[i + 1]) + " is not a share of 1");
                    luminance += kShare[i] * *v;
                }
                library_[material] = luminance;
            }
        }
    }

    const std::string& name_;
    const OpenLibrary& open_;
    MeshBuilder mesh_;
    MeshPlace place_{name_, "line", 0};
    std::string material_;
    std::optional<std::string> known_;  ///< the name behind number_
    std::uint16_t number_ = 0;
    std::unordered_map<std::string, std::optional<double>> library_;
    std::vector<std::string> missing_;
    std::vector<std::uint32_t> corners_;
    std::uint64_t lines_ = 0, libraries_ = 0;
    std::size_t asked_ = 0;  ///< libraries that the file names, each time it does
};

}  // namespace

MeshFile parse_obj(std::string_view text, const std::string& name, const OpenLibrary& open) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    return ObjParser(name, open).parse(text);
}

}  // namespace citysplat::io
