#include "io/input/region_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/text.hpp"
#include "io/crs/crs.hpp"
#include "io/crs/known_crs.hpp"

#include <nlohmann/json.hpp>

#include <cctype>

namespace citysplat::io {

namespace {

using nlohmann::json;

constexpr std::uint64_t kLargest_bytes = 256 << 20;
constexpr int kDeepest = 8;  ///< collections within collections

/// What every format has in common: rings are collected, closed and judged here.
class Collector {
  public:
    explicit Collector(const std::filesystem::path& path) : path_(path) {}

    void begin_polygon() { region_.polygons.emplace_back(); }
    void add(Ring ring) {
        if (ring.size() > 1 && ring.front().x_m == ring.back().x_m && ring.front().y_m == ring.back().y_m)
            ring.pop_back();
        ++rings_;
        if (const auto why = why_no_ring(ring))
            throw InputError(path_.string() + ": ring " + std::to_string(rings_) + ": " + *why);
        region_.polygons.back().push_back(std::move(ring));
    }
    void say_crs(std::string crs) { region_.crs = std::move(crs); }
    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(path_.string() + ": " + what + "; polygons are GeoJSON or WKT");
    }
    RegionFile take() {
        if (rings_ == 0) refuse("there is no polygon in it");
        return std::move(region_);
    }

  private:
    const std::filesystem::path& path_;
    RegionFile region_;
    std::size_t rings_ = 0;
};

class GeoJson {
  public:
    explicit GeoJson(Collector& out) : out_(out) {}

    void read(const std::string& text) {
        const json root = json::parse(text, nullptr, false);
        if (root.is_discarded()) out_.refuse("not JSON");
        if (!root.is_object()) out_.refuse("not a GeoJSON object");
        if (root.contains("crs")) out_.say_crs(crs_of(root["crs"]));
        add(root, 0);
    }

  private:
    /// "crs" of the first GeoJSON (2008): {"type": "name", "properties": {"name":
    /// "urn:ogc:def:crs:EPSG::2154"}}
    std::string crs_of(const json& crs) const {
        const json name =
            crs.is_object() ? crs.value(json::json_pointer("/properties/name"), json()) : json();
        if (!name.is_string()) return {};
        const std::string text = name.get<std::string>();
        if (text.find("CRS84") != std::string::npos) return "EPSG:4326";
        const std::size_t colon = text.rfind(':');
        const auto code =
            colon == std::string::npos ? std::nullopt : parse_whole<int>(text.substr(colon + 1));
        if (!code) out_.refuse("its coordinate system \"" + text + "\" is not an EPSG code");
        return "EPSG:" + std::to_string(*code);
    }

    void add(const json& object, int depth) const {
        if (!object.is_object() || depth > kDeepest) out_.refuse("not a GeoJSON object");
        const json type = object.value("type", json());
        const auto members = [&](const char* key) -> const json& {
            if (!object.contains(key) || !object[key].is_array())
                out_.refuse(type.dump() + " without an array \"" + key + "\"");
            return object[key];
        };
        if (type == "FeatureCollection")
            for (const json& feature : members("features")) add(feature, depth + 1);
        else if (type == "GeometryCollection")
            for (const json& geometry : members("geometries")) add(geometry, depth + 1);
        else if (type == "Feature")
            add(object.value("geometry", json()), depth + 1);
        else if (type == "Polygon")
            add_polygon(members("coordinates"));
        else if (type == "MultiPolygon")
            for (const json& polygon : members("coordinates")) add_polygon(polygon);
        else
            out_.refuse("a geometry of type " + type.dump() + " has no inside");
    }

    void add_polygon(const json& rings) const {
        if (!rings.is_array()) out_.refuse("a polygon is an array of rings");
        out_.begin_polygon();
        for (const json& corners : rings) {
            Ring ring;
            if (!corners.is_array()) out_.refuse("a ring is an array of positions");
            for (const json& c : corners) {
                if (!c.is_array() || c.size() < 2 || !c[0].is_number() || !c[1].is_number())
                    out_.refuse("a position is an array of two numbers");
                ring.push_back({c[0].get<double>(), c[1].get<double>()});
            }
            out_.add(std::move(ring));
        }
    }

    Collector& out_;
};

class Wkt {
  public:
    Wkt(Collector& out, std::string_view text) : out_(out), text_(text) {}

    void read() {
        while (skip_blanks(), at_ < text_.size()) {
            std::string word = take_word();
            if (word == "srid") {
                expect('=');
                const auto code = parse_whole<int>(take_word());
                if (!code) out_.refuse("SRID is not a number");
                out_.say_crs("EPSG:" + std::to_string(*code));
                expect(';');
                word = take_word();
            }
            const bool many = word == "multipolygon";
            if (!many && word != "polygon")
                out_.refuse("\"" + word.substr(0, 32) + "\" is neither POLYGON nor MULTIPOLYGON");
            if (skip_blanks(); peek() != '(')  // Z, M, ZM
                if (const std::string kind = take_word(); kind != "z" && kind != "m" && kind != "zm")
                    out_.refuse("\"" + kind.substr(0, 32) + "\" where a ( was expected");
            if (many)
                list([&] { polygon(); });
            else
                polygon();
        }
    }

  private:
    template <class Item>
    void list(const Item& item) {
        expect('(');
        do item();
        while (accept(','));
        expect(')');
    }
    void polygon() {
        out_.begin_polygon();
        list([&] { ring(); });
    }
    void ring() {
        Ring corners;
        list([&] {
            std::vector<double> numbers;
            while (skip_blanks(), peek() != ',' && peek() != ')' && numbers.size() < 5) {
                const auto number = parse_number(take_word());
                if (!number) out_.refuse("a coordinate is not a number");
                numbers.push_back(*number);
            }
            if (numbers.size() < 2 || numbers.size() > 4) out_.refuse("a position has two to four numbers");
            corners.push_back({numbers[0], numbers[1]});
        });
        out_.add(std::move(corners));
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_blanks() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    }
    bool accept(char c) {
        skip_blanks();
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c))
            out_.refuse("byte " + std::to_string(at_) + ": a " + std::string(1, c) + " was expected");
    }
    /// Up to a blank or a mark; lower case.
    std::string take_word() {
        skip_blanks();
        const std::size_t begin = at_;
        while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) &&
               std::string_view("(),;=").find(text_[at_]) == std::string_view::npos)
            ++at_;
        return lower_case(text_.substr(begin, at_ - begin));
    }

    Collector& out_;
    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

RegionFile read_region(const std::filesystem::path& path) {
    if (const File file(path, File::Mode::read); file.size() > kLargest_bytes)
        throw InputError(path.string() + ": too large for a polygon");
    const std::string text = read_text_file(path);
    Collector collector(path);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) collector.refuse("an empty file");
    if (text[first] == '{')
        GeoJson(collector).read(text);
    else
        Wkt(collector, text).read();
    return collector.take();
}

void convert_region(RegionFile& region, const std::string& to, const std::filesystem::path& path) {
    if (region.crs.empty() || same_crs(region.crs, to)) return;
    const CrsConversion conversion(region.crs, to);
    for (Polygon& polygon : region.polygons)
        for (Ring& ring : polygon) {
            std::vector<double> x, y;
            for (const RingCorner& c : ring) x.push_back(c.x_m), y.push_back(c.y_m);
            conversion.convert(x, y);
            for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = {x[i], y[i]};
            if (const auto why = why_no_ring(ring))
                throw InputError(path.string() + ": in the city's coordinate system, " + *why);
        }
}

}  // namespace citysplat::io
