#include "io/las/las_crs.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/crs/known_crs.hpp"

#include <cstdlib>

namespace citysplat::io {

namespace {

constexpr std::uint16_t kWkt = 2112, kGeoKeys = 34735, kGeoDoubles = 34736, kGeoAscii = 34737;
constexpr std::uint16_t kModelType = 1024, kCitation = 1026, kGeographic = 2048, kProjected = 3072,
                        kProjectedCitation = 3073, kLinearUnits = 3076, kVertical = 4096,
                        kVerticalUnits = 4099;
constexpr std::uint16_t kUserDefined = 32767;

/// The keys of a GeoTIFF directory that matter to us.
struct GeoKeys {
    std::uint32_t model = 0, geographic = 0, projected = 0, linear_units = 0, vertical = 0,
                  vertical_units = 0;
    std::string citation;
};

void take_key(GeoKeys& keys, std::uint16_t id, std::uint16_t value) {
    switch (id) {
        case kModelType:
            keys.model = value;
            break;
        case kGeographic:
            keys.geographic = value;
            break;
        case kProjected:
            keys.projected = value;
            break;
        case kLinearUnits:
            keys.linear_units = value;
            break;
        case kVertical:
            keys.vertical = value;
            break;
        case kVerticalUnits:
            keys.vertical_units = value;
            break;
        default:
            break;
    }
}

std::string ascii_text(const LasVlr& ascii, std::size_t at, std::size_t count) {
    std::string text;
    for (std::size_t i = at; i < at + count; ++i) {
        const char c = static_cast<char>(ascii.payload[i]);
        if (c == '\0') break;
        text += c >= 32 && c < 127 ? c : ' ';
    }
    while (!text.empty() && (text.back() == '|' || text.back() == ' ')) text.pop_back();
    return text;
}

GeoKeys read_geo_keys(const LasHeader& h, const LasVlr& directory, const std::string& file_name) {
    const auto fail = [&](const std::string& what) {
        throw InputError(file_name + ": GeoTIFF keys at byte " + std::to_string(directory.offset) + ": " +
                         what);
    };
    GeoKeys keys;
    if (directory.payload.empty()) return keys;  // some writers leave the record empty
    if (directory.payload.size() < 8)
        fail("the directory is cut off: " + std::to_string(directory.payload.size()) +
             " bytes; expected at least 8");
    const std::byte* raw = directory.payload.data();
    const std::size_t count = load_le<std::uint16_t>(raw + 6);
    if (count > directory.payload.size() / 8 - 1)
        fail("claims " + std::to_string(count) + " keys, but has room for " +
             std::to_string(directory.payload.size() / 8 - 1));
    const LasVlr *doubles = h.find("LASF_Projection", kGeoDoubles),
                 *ascii = h.find("LASF_Projection", kGeoAscii);
    for (std::size_t i = 1; i <= count; ++i) {
        const auto u16 = [&](std::size_t field) { return load_le<std::uint16_t>(raw + 8 * i + 2 * field); };
        const std::uint16_t id = u16(0), location = u16(1), n = u16(2), value = u16(3);
        if (location == 0) take_key(keys, id, value);
        const LasVlr* target = location == kGeoDoubles ? doubles : location == kGeoAscii ? ascii : nullptr;
        if (location == 0 || location == kGeoKeys) continue;
        if (location != kGeoDoubles && location != kGeoAscii)
            fail("key " + std::to_string(id) + " points at record " + std::to_string(location) +
                 "; expected 0, 34735, 34736 or 34737");
        const std::size_t item = location == kGeoDoubles ? 8 : 1;
        if (!target || !fits(value * item, n * item, target->payload.size()))
            fail("key " + std::to_string(id) + " points at items " + std::to_string(value) + " to " +
                 std::to_string(value + n) + " of record " + std::to_string(location) + ", which has " +
                 std::to_string(target ? target->payload.size() / item : 0));
        if (location == kGeoAscii && (id == kProjectedCitation || (id == kCitation && keys.citation.empty())))
            keys.citation = ascii_text(*target, value, n);
    }
    return keys;
}

/// Sets `metres` to the size of a unit that the keys name; one that nobody knows is noted.
void take_unit(std::uint32_t epsg, Crs& crs, std::string& name, double& metres) {
    if (const auto unit = known_length_unit(epsg)) {
        name = unit->first;
        metres = unit->second;
    } else {
        crs.notes.push_back("the GeoTIFF keys name no known unit of length (" + std::to_string(epsg) +
                            "); metres are assumed");
    }
}

Crs crs_from_keys(const GeoKeys& keys) {
    const auto known = [](std::uint32_t code) { return code != 0 && code != kUserDefined; };
    const bool projected = keys.model == 1 || (keys.model == 0 && keys.projected != 0);
    const bool geographic = !projected && (keys.model == 2 || keys.model == 3 || keys.geographic != 0);
    const std::uint32_t code = projected ? keys.projected : geographic ? keys.geographic : 0;
    Crs crs;
    if (known(code))
        crs = crs_from_epsg(static_cast<int>(code));
    else if (!keys.citation.empty())
        crs.text = keys.citation;
    else if (projected || geographic)
        crs.text = "user-defined GeoTIFF system";
    if (!keys.citation.empty()) crs.name = keys.citation;
    if (geographic) {
        crs.geographic = true;
        crs.unit = "degree";
        crs.metres_per_unit = 0;
    } else if (known(keys.linear_units)) {
        take_unit(keys.linear_units, crs, crs.unit, crs.metres_per_unit);
        crs.vertical_metres_per_unit = crs.metres_per_unit;
    }
    std::string ignored;
    if (known(keys.vertical_units))
        take_unit(keys.vertical_units, crs, ignored, crs.vertical_metres_per_unit);
    else if (known(keys.vertical))
        if (const auto heights = known_crs("EPSG:" + std::to_string(keys.vertical));
            heights && heights->heights_only)
            crs.vertical_metres_per_unit = heights->metres_per_unit;
    return crs;
}

}  // namespace

Crs las_crs(const LasHeader& h, const std::string& file_name) {
    const LasVlr* wkt = h.find("LASF_Projection", kWkt);
    const LasVlr* directory = h.find("LASF_Projection", kGeoKeys);
    Crs crs;
    if (wkt && !wkt->payload.empty()) {
        crs = crs_from_wkt({reinterpret_cast<const char*>(wkt->payload.data()), wkt->payload.size()});
        if (directory) crs.notes.push_back("the file has both WKT and GeoTIFF keys; the WKT is used");
    }
    if (crs.text.empty() && directory) crs = crs_from_keys(read_geo_keys(h, *directory, file_name));
    return crs;
}

std::optional<LasCrsRecord> las_crs_record(const std::string& crs) {
    if (!crs.starts_with("EPSG:")) {
        if (!crs_from_wkt(crs).notes.empty()) return std::nullopt;
        return LasCrsRecord{kWkt, crs + '\0', true};
    }
    const int epsg = std::atoi(crs.c_str() + 5);
    if (epsg <= 0 || epsg >= kUserDefined) {
        const auto wkt = wkt_of_known_crs(crs);
        return wkt ? std::optional(LasCrsRecord{kWkt, *wkt + '\0', true}) : std::nullopt;
    }
    const std::uint16_t keys[]{1, 1, 0,          2, kModelType, 0,
                               1, 1, kProjected, 0, 1,          static_cast<std::uint16_t>(epsg)};
    std::string payload(sizeof keys, '\0');
    for (std::size_t i = 0; i < std::size(keys); ++i)
        store_le(reinterpret_cast<std::byte*>(payload.data()) + 2 * i, keys[i]);
    return LasCrsRecord{kGeoKeys, std::move(payload), false};
}

}  // namespace citysplat::io
