#include "io/write/raster_frame.hpp"

#include "core/output_file.hpp"
#include "io/crs/known_crs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace citysplat {

namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
    OutputFile file(path);
    file.writer().text(text);
    file.commit(true);
}

/// As exact as a double.
std::string number(double v) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", v);
    return text.data();
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text)
        out += c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '"' ? "&quot;"
                          : std::string(1, c);
    return out;
}

std::string rectangle(const char* name, std::int64_t x, std::int64_t y, const RasterFrame& size) {
    return std::string("<") + name + " xOff=\"" + std::to_string(x) + "\" yOff=\"" + std::to_string(y) +
           "\" xSize=\"" + std::to_string(size.width) + "\" ySize=\"" + std::to_string(size.height) + "\"/>";
}

}  // namespace

void write_frame(const std::filesystem::path& picture, const RasterFrame& f, const std::string& crs) {
    std::filesystem::path world = picture, prj = picture;
    write_text(world.replace_extension(".pgw"), number(f.resolution_m) + "\n0\n0\n" +
                                                    number(-f.resolution_m) + "\n" +
                                                    number(f.west_m + f.resolution_m / 2) + "\n" +
                                                    number(f.north_m - f.resolution_m / 2) + "\n");
    if (const auto wkt = crs.empty() ? std::nullopt : io::wkt_of_known_crs(crs))
        write_text(prj.replace_extension(".prj"), *wkt + "\n");
}

void write_vrt(const std::filesystem::path& path, std::span<const MosaicPart> parts, const std::string& crs) {
    const double step = parts[0].frame.resolution_m;
    const auto pixels = [step](double metres) { return std::llround(metres / step); };
    std::int64_t west = pixels(parts[0].frame.west_m), north = pixels(parts[0].frame.north_m), east = west,
                 south = north;
    for (const MosaicPart& p : parts) {
        west = std::min<std::int64_t>(west, pixels(p.frame.west_m));
        north = std::max<std::int64_t>(north, pixels(p.frame.north_m));
        east = std::max<std::int64_t>(east, pixels(p.frame.west_m) + p.frame.width);
        south = std::min<std::int64_t>(south, pixels(p.frame.north_m) - p.frame.height);
    }
    std::string text = "<VRTDataset rasterXSize=\"" + std::to_string(east - west) + "\" rasterYSize=\"" +
                       std::to_string(north - south) + "\">\n";
    if (const auto wkt = crs.empty() ? std::nullopt : io::wkt_of_known_crs(crs))
        text += "  <SRS>" + escaped(*wkt) + "</SRS>\n";
    text += "  <GeoTransform>" + number(static_cast<double>(west) * step) + ", " + number(step) + ", 0, " +
            number(static_cast<double>(north) * step) + ", 0, " + number(-step) + "</GeoTransform>\n";
    constexpr std::array<const char*, 4> kChannels{"Red", "Green", "Blue", "Alpha"};
    for (std::size_t band = 1; band <= kChannels.size(); ++band) {
        const std::string number_of_band = std::to_string(band);
        text += "  <VRTRasterBand dataType=\"Byte\" band=\"" + number_of_band + "\">\n    <ColorInterp>" +
                kChannels[band - 1] + "</ColorInterp>\n";
        for (const MosaicPart& p : parts)
            text += "    <SimpleSource><SourceFilename relativeToVRT=\"1\">" +
                    escaped(p.picture.filename().string()) + "</SourceFilename><SourceBand>" +
                    number_of_band + "</SourceBand>" + rectangle("SrcRect", 0, 0, p.frame) +
                    rectangle("DstRect", pixels(p.frame.west_m) - west, north - pixels(p.frame.north_m),
                              p.frame) +
                    "</SimpleSource>\n";
        text += "  </VRTRasterBand>\n";
    }
    write_text(path, text + "</VRTDataset>\n");
}

}  // namespace citysplat
