#include "io/crs/crs.hpp"

#include "core/error.hpp"
#include "io/crs/known_crs.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

namespace citysplat::io {

namespace {

/// WKT is a tree of KEYWORD[argument, …]; arguments are nodes, strings or bare words. PROJ wants it complete;
/// many files have less, which still tells the unit.
struct WktNode {
    std::string keyword;  ///< upper case; empty for a string or word
    std::string value;    ///< of a string or word
    std::vector<WktNode> children;

    const WktNode* child(std::initializer_list<std::string_view> keywords) const {
        for (const auto& c : children)
            if (std::find(keywords.begin(), keywords.end(), c.keyword) != keywords.end()) return &c;
        return nullptr;
    }
    std::string name() const {
        return !children.empty() && children[0].keyword.empty() ? children[0].value : std::string();
    }
};

class WktParser {
  public:
    explicit WktParser(std::string_view text) : text_(text) {}

    std::optional<WktNode> parse() {
        WktNode root;
        return node(root, 0) ? std::optional(std::move(root)) : std::nullopt;
    }

  private:
    static constexpr int kMaxDepth = 32;

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' ||
                                      text_[at_] == '\t' || text_[at_] == '\0'))
            ++at_;
    }
    bool take(char c) {
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool quoted(std::string& out) {
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (c != '"')
                out += c;
            else if (at_ < text_.size() && text_[at_] == '"')
                out += text_[at_++];
            else
                return true;
        }
        return false;
    }
    bool node(WktNode& out, int depth) {
        if (depth > kMaxDepth) return false;
        if (take('"')) return quoted(out.value);
        skip_blanks();
        const std::size_t begin = at_;
        while (at_ < text_.size() &&
               std::string_view(",[]()\" \n\r\t").find(text_[at_]) == std::string_view::npos)
            ++at_;
        out.value = text_.substr(begin, at_ - begin);
        const bool square = take('[');
        if (!square && !take('(')) return !out.value.empty();
        out.keyword = std::move(out.value);
        out.value.clear();
        std::transform(out.keyword.begin(), out.keyword.end(), out.keyword.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
        do {
            out.children.emplace_back();
            if (!node(out.children.back(), depth + 1)) return false;
        } while (take(','));
        return take(square ? ']' : ')');
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::optional<double> parse_number(std::string_view text) {
    double v = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(v)) return std::nullopt;
    return v;
}

int epsg_of(const WktNode& node) {
    const WktNode* id = node.child({"AUTHORITY", "ID"});
    if (!id || id->children.size() < 2 || id->children[0].value != "EPSG") return 0;
    const auto code = parse_number(id->children[1].value);
    return code && *code > 0 && *code < 1e6 ? static_cast<int>(*code) : 0;
}

/// UNIT of a system itself (WKT 1, or WKT 2 behind the axes), else of its first axis.
const WktNode* unit_of(const WktNode& system) {
    if (const WktNode* unit = system.child({"UNIT", "LENGTHUNIT"})) return unit;
    if (const WktNode* axis = system.child({"AXIS"})) return axis->child({"UNIT", "LENGTHUNIT"});
    return nullptr;
}

void take_unit(const WktNode& system, std::string& name, double& metres) {
    const WktNode* unit = unit_of(system);
    if (!unit || unit->children.size() < 2) return;
    const auto size = parse_number(unit->children[1].value);
    if (!size || !(*size > 0)) return;
    name = unit->name();
    // Writers round these; feet are told apart by their name and the sixth digit.
    metres = std::fabs(*size - 1) < 1e-9 ? 1.0 : *size;
}

void take_horizontal(const WktNode& node, Crs& crs) {
    if (node.keyword == "PROJCS" || node.keyword == "PROJCRS" || node.keyword == "PROJECTEDCRS") {
        take_unit(node, crs.unit, crs.metres_per_unit);
    } else {
        crs.geographic = true;
        crs.unit = "degree";
        crs.metres_per_unit = 0;
    }
    if (crs.name.empty()) crs.name = node.name();
    if (!crs.epsg) crs.epsg = epsg_of(node);
}

void take_system(const WktNode& node, Crs& crs, bool& found) {
    const std::string& k = node.keyword;
    const bool horizontal = k == "PROJCS" || k == "PROJCRS" || k == "PROJECTEDCRS" || k == "GEOGCS" ||
                            k == "GEOGCRS" || k == "GEOGRAPHICCRS" || k == "GEODCRS" || k == "GEODETICCRS";
    if (horizontal && !found) {
        found = true;
        take_horizontal(node, crs);
        if (crs.metres_per_unit > 0) crs.vertical_metres_per_unit = crs.metres_per_unit;
    } else if (k == "VERT_CS" || k == "VERTCRS" || k == "VERTICALCRS") {
        std::string ignored;
        take_unit(node, ignored, crs.vertical_metres_per_unit);
    } else if (k == "COMPD_CS" || k == "COMPOUNDCRS" || k == "BOUNDCRS" || k == "SOURCECRS") {
        if (k != "SOURCECRS" && k != "BOUNDCRS") crs.name = node.name();
        crs.epsg = crs.epsg ? crs.epsg : epsg_of(node);
        for (const auto& child : node.children) take_system(child, crs, found);
    }
}

std::string factor_text(double metres) {
    char text[40];
    std::snprintf(text, sizeof text, "%.10g m", metres);
    return text;
}

}  // namespace

namespace {

void take_known(const KnownCrs& known, Crs& crs) {
    crs.name = known.name;
    crs.epsg = known.epsg;
    crs.geographic = known.geographic;
    crs.unit = known.unit;
    crs.metres_per_unit = known.metres_per_unit;
    // Heights that are not spoken of are in the unit of the plane.
    crs.vertical_metres_per_unit =
        known.vertical_metres_per_unit.value_or(known.metres_per_unit > 0 ? known.metres_per_unit : 1);
}

}  // namespace

Crs crs_from_wkt(std::string_view wkt) {
    while (!wkt.empty() && (wkt.back() == '\0' || wkt.back() == '\n' || wkt.back() == ' '))
        wkt.remove_suffix(1);
    Crs crs;
    crs.text = std::string(wkt);
    if (wkt.empty()) return crs;
    if (const auto known = known_crs(crs.text); known && !known->heights_only) {
        take_known(*known, crs);
        return crs;
    }
    bool found = false;
    if (const auto root = WktParser(wkt).parse()) take_system(*root, crs, found);
    if (!found)
        crs.notes.push_back("the coordinate system is not readable WKT; its unit is taken to be metres");
    return crs;
}

Crs crs_from_epsg(int code) {
    Crs crs;
    crs.epsg = code;
    crs.text = crs.name = "EPSG:" + std::to_string(code);
    const auto known = known_crs(crs.text);
    if (known && !known->heights_only) {
        const std::string text = crs.text;
        take_known(*known, crs);
        crs.text = text;
    } else {
        crs.notes.push_back(
            crs.text +
            (known ? " is a system of heights only" : " is not in PROJ's database of coordinate systems") +
            "; its unit is taken to be metres");
    }
    return crs;
}

Crs crs_from_text(std::string_view text) {
    if (text.starts_with("EPSG:") || text.starts_with("epsg:")) {
        const auto code = parse_number(text.substr(5));
        if (!code || *code < 1 || *code > 999999 || *code != std::floor(*code))
            throw UsageError("\"" + std::string(text) + "\" is not an EPSG code");
        Crs crs = crs_from_epsg(static_cast<int>(*code));
        if (!crs.notes.empty()) throw UsageError(crs.notes.front());
        return crs;
    }
    const auto root = WktParser(text).parse();
    if (!root || root->keyword.empty())
        throw UsageError("\"" + std::string(text.substr(0, 40)) +
                         "\" is neither EPSG:number nor WKT; give the coordinate system as one of them");
    return crs_from_wkt(text);
}

std::string Crs::label() const {
    const std::string code = epsg ? "EPSG:" + std::to_string(epsg) : std::string();
    if (name.empty()) return code.empty() ? text.substr(0, 60) : code;
    return code.empty() || name == code ? name : name + " (" + code + ")";
}

void Crs::describe(PointFileInfo& info) const {
    info.crs = text;
    info.crs_name = text.empty() ? name : label();
    info.unit = unit;
    info.metres_per_unit = metres_per_unit;
    info.vertical_metres_per_unit = vertical_metres_per_unit;
    info.notes.insert(info.notes.end(), notes.begin(), notes.end());
}

void Crs::assign(const ReadOptions& options, const std::string& file_name) {
    if (options.crs.empty()) return;
    Crs wanted = crs_from_text(options.crs);
    if (!text.empty() && !same_crs(text, wanted.text))
        throw InputError(file_name + ": the file is in " + label() + ", which contradicts the assigned " +
                         wanted.label());
    if (!text.empty()) return;
    if (metres_per_unit != 1 && metres_per_unit != wanted.metres_per_unit)
        throw InputError(file_name + ": coordinates are in " + unit + ", which contradicts the assigned " +
                         wanted.label());
    wanted.notes = notes;
    *this = std::move(wanted);
}

bool same_crs(const std::string& a, const std::string& b) {
    if (a == b) return true;
    if (const auto same = same_known_crs(a, b)) return *same;
    const auto epsg = [](const std::string& text) {
        const bool code = text.starts_with("EPSG:") || text.starts_with("epsg:");
        return code ? std::atoi(text.c_str() + 5) : crs_from_wkt(text).epsg;
    };
    const int code = epsg(a);
    return code != 0 && code == epsg(b);
}

Vec3d Crs::scale_to_deliver(const ReadOptions& options, const std::string& file_name) {
    if (options.units == ReadOptions::Units::as_is) return {1, 1, 1};
    if (geographic || metres_per_unit == 0)
        throw InputError(file_name + ": coordinates are in degrees (" + (name.empty() ? text : name) +
                         "); reproject the file to a projected system in metres first");
    const bool metres = metres_per_unit == 1.0 && vertical_metres_per_unit == 1.0;
    if (!metres && options.units == ReadOptions::Units::refuse)
        throw InputError(file_name + ": coordinates are in " + unit + " (" + factor_text(metres_per_unit) +
                         "), heights in units of " + factor_text(vertical_metres_per_unit) +
                         "; --units scale converts them to metres");
    const Vec3d factors{metres_per_unit, metres_per_unit, vertical_metres_per_unit};
    if (!metres) {
        notes.push_back("coordinates in " + unit + " are scaled to metres");
        name = (name.empty() ? "unnamed" : name) + ", scaled to metres";
        std::replace(name.begin(), name.end(), '"', '\'');
        text = "LOCAL_CS[\"" + name + "\",UNIT[\"metre\",1]]";
        epsg = 0;
        unit = "metre";
        metres_per_unit = vertical_metres_per_unit = 1;
    }
    return factors;
}

}  // namespace citysplat::io
