#include "io/write/export_splats.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "io/write/cloud_header.hpp"

#include <cmath>
#include <vector>

namespace citysplat::io {

namespace {

/// A splat in the world.
struct WorldSplat {
    Vec3d centre;
    Vec3f normal;
    float radius_m;
    Splat splat;
};

/// What all files of an export share. The offset is added to stored coordinates where these are small
/// numbers.
struct ExportLayout {
    Vec3d offset_m{0, 0, 0};
    std::string crs;
};

struct PlySplats {
    static constexpr auto kFields = field_table<WorldSplat>(
        FieldOf{"x", "m", "", [](const WorldSplat& s) { return s.centre.x; }},
        FieldOf{"y", "m", "", [](const WorldSplat& s) { return s.centre.y; }},
        FieldOf{"z", "m", "", [](const WorldSplat& s) { return s.centre.z; }},
        FieldOf{"nx", "", "normal", [](const WorldSplat& s) { return s.normal.x; }},
        FieldOf{"ny", "", "", [](const WorldSplat& s) { return s.normal.y; }},
        FieldOf{"nz", "", "", [](const WorldSplat& s) { return s.normal.z; }},
        FieldOf{"radius", "m", "metres", [](const WorldSplat& s) { return s.radius_m; }},
        FieldOf{"label", "", "semantic class", [](const WorldSplat& s) { return s.splat.label; }},
        FieldOf{"intensity", "", "", [](const WorldSplat& s) { return s.splat.intensity; }},
        FieldOf{"group", "", "", [](const WorldSplat& s) { return s.splat.group; }},
        FieldOf{"point_count", "", "", [](const WorldSplat& s) { return s.splat.point_count; }},
        FieldOf{"acquired_range_m", "m", "", [](const WorldSplat& s) { return s.splat.range; }},
        FieldOf{"acquired_incidence", "", "", [](const WorldSplat& s) { return s.splat.incidence; }},
        FieldOf{"instance", "", "object of the payload; 0: none",
                [](const WorldSplat& s) { return s.splat.instance; }});
    static constexpr std::size_t kBytes = kFields.kBytes;

    static std::string header(const ExportLayout&, const CloudSummary& summary) {
        const std::string comment = "citysplat splats: discs with centre, normal, radius";
        return ply_header(kFields.fields(), summary.points, std::span(&comment, 1));
    }
    static Vec3d put(std::byte*& at, const WorldSplat& s, const ExportLayout&) {
        kFields.put(at, s);
        return s.centre;
    }
};

/// Positions are relative to the first tile's frame (viewers keep float), named in a comment. A disc becomes
/// a Gaussian whose 2σ is the radius; colour is the intensity as the constant term of spherical harmonics.
struct GaussianSplats {
    struct Gaussian {
        Vec3f centre, normal;
        float colour, scale;
        float w, x, y;  ///< shortest rotation from z to the normal; its z is 0
    };
    static constexpr auto kFields = field_table<Gaussian>(
        FieldOf{"x", "m", "", [](const Gaussian& g) { return g.centre.x; }},
        FieldOf{"y", "m", "", [](const Gaussian& g) { return g.centre.y; }},
        FieldOf{"z", "m", "", [](const Gaussian& g) { return g.centre.z; }},
        FieldOf{"nx", "", "", [](const Gaussian& g) { return g.normal.x; }},
        FieldOf{"ny", "", "", [](const Gaussian& g) { return g.normal.y; }},
        FieldOf{"nz", "", "", [](const Gaussian& g) { return g.normal.z; }},
        FieldOf{"f_dc_0", "", "", [](const Gaussian& g) { return g.colour; }},
        FieldOf{"f_dc_1", "", "", [](const Gaussian& g) { return g.colour; }},
        FieldOf{"f_dc_2", "", "", [](const Gaussian& g) { return g.colour; }},
        FieldOf{"opacity", "", "", [](const Gaussian&) { return 4.0f; }},  // logit of 98 %
        FieldOf{"scale_0", "", "", [](const Gaussian& g) { return g.scale; }},
        FieldOf{"scale_1", "", "", [](const Gaussian& g) { return g.scale; }},
        FieldOf{"rot_0", "", "", [](const Gaussian& g) { return g.w; }},
        FieldOf{"rot_1", "", "", [](const Gaussian& g) { return g.x; }},
        FieldOf{"rot_2", "", "", [](const Gaussian& g) { return g.y; }},
        FieldOf{"rot_3", "", "", [](const Gaussian&) { return 0.0f; }});
    static constexpr std::size_t kBytes = kFields.kBytes;

    static std::string header(const ExportLayout& layout, const CloudSummary& summary) {
        char offset[160];
        std::snprintf(offset, sizeof offset, "offset %.0f %.0f %.0f", layout.offset_m.x, layout.offset_m.y,
                      layout.offset_m.z);
        const std::string comments[]{"citysplat splats as 2-D Gaussians", offset};
        return ply_header(kFields.fields(), summary.points, comments);
    }
    static Vec3d put(std::byte*& at, const WorldSplat& s, const ExportLayout& layout) {
        constexpr float kHarmonic = 0.28209479177387814f;
        const Vec3f n = s.normal;
        float w = 1 + n.z, x = -n.y, y = n.x;
        if (w < 1e-6f) w = 0, x = 1, y = 0;
        const float inverse = 1 / std::sqrt(w * w + x * x + y * y);
        kFields.put(at, {vec_cast<float>(s.centre - layout.offset_m), n,
                         (static_cast<float>(s.splat.intensity) / 65535.0f - 0.5f) / kHarmonic,
                         std::log(s.radius_m * 0.5f), w * inverse, x * inverse, y * inverse});
        return s.centre;
    }
};

/// The 30 bytes that every LAS point has. Returns where the file says that it is.
Vec3d put_splat_point(std::byte*& at, const WorldSplat& s, const ExportLayout& layout) {
    const LasGrid grid{layout.offset_m};
    LasPoint point;
    point.place = grid.steps(s.centre);
    point.intensity = s.splat.intensity;
    point.label = s.splat.label;
    point.source = s.splat.point_count;
    put_las_point(at, point);
    return grid.metres(point.place);
}

struct LasSplats {
    static constexpr auto kFields = field_table<WorldSplat>(
        FieldOf{"radius", "m", "metres", [](const WorldSplat& s) { return s.radius_m; }},
        FieldOf{"nx", "", "normal", [](const WorldSplat& s) { return s.normal.x; }},
        FieldOf{"ny", "", "", [](const WorldSplat& s) { return s.normal.y; }},
        FieldOf{"nz", "", "", [](const WorldSplat& s) { return s.normal.z; }},
        FieldOf{"label", "", "semantic class", [](const WorldSplat& s) { return s.splat.label; }},
        FieldOf{"group", "", "0 ground 1 surface 2 line 3 other",
                [](const WorldSplat& s) { return s.splat.group; }});
    static constexpr std::size_t kBytes = kLasPointBytes + kFields.kBytes;

    static std::string header(const ExportLayout& layout, const CloudSummary& summary) {
        constexpr auto kExtra = kFields.fields();
        return las_header({kExtra, {layout.offset_m}, layout.crs, "splats"}, summary);
    }
    static Vec3d put(std::byte*& at, const WorldSplat& s, const ExportLayout& layout) {
        const Vec3d place = put_splat_point(at, s, layout);
        kFields.put(at, s);
        return place;
    }
};

/// For readers that stumble over extra bytes.
struct PlainLasSplats {
    static constexpr std::size_t kBytes = kLasPointBytes;

    static std::string header(const ExportLayout& layout, const CloudSummary& summary) {
        return las_header({{}, {layout.offset_m}, layout.crs, "splats"}, summary);
    }
    static Vec3d put(std::byte*& at, const WorldSplat& s, const ExportLayout& layout) {
        return put_splat_point(at, s, layout);
    }
};

/// Appends the records of a tile.
template <class Format>
void append_tile(const SplatTile& tile, const ExportLayout& layout, std::vector<std::byte>& records,
                 CloudSummary& summary) {
    const Vec3d origin = tile.frame().origin_m();
    records.resize(tile.size() * Format::kBytes);
    std::byte* at = records.data();
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const Disc disc = tile.disc(i);
        const WorldSplat splat{origin + vec_cast<double>(disc.centre), disc.normal, disc.radius,
                               tile.splat(i)};
        summary.add(Format::put(at, splat, layout));
    }
}

template <class Format>
std::uint64_t export_as(const TileSource& city, const std::filesystem::path& path, const CancelToken& cancel,
                        Progress& progress) {
    ExportLayout layout;
    layout.crs = city.crs();
    if (!city.tiles().empty()) {
        const Vec3d m = city.tiles()[0].min;
        layout.offset_m = {std::floor(m.x), std::floor(m.y), std::floor(m.z)};
    }
    CloudSummary summary;
    OutputFile file(path);
    FileWriter& out = file.writer();
    out.text(Format::header(layout, summary));
    Progress::Stage stage(progress, "export", city.tiles().size(), "tiles");
    std::vector<std::byte> records;
    for (std::size_t t = 0; t < city.tiles().size(); ++t) {
        cancel.check();
        append_tile<Format>(city.load(t), layout, records, summary);
        out.write(records);
        stage.advance(1);
    }
    const std::string header = Format::header(layout, summary);
    out.patch(0, std::as_bytes(std::span(header)));
    file.commit(true);
    return summary.points;
}

}  // namespace

ExportFormat export_format_from(const std::string& name) {
    if (name == "ply") return ExportFormat::ply;
    if (name == "2dgs") return ExportFormat::gaussian;
    if (name == "las") return ExportFormat::las;
    throw UsageError("export format \"" + name + "\" is not one of ply, 2dgs, las");
}

std::uint64_t export_splats(const TileSource& city, ExportFormat format, const std::filesystem::path& path,
                            const CancelToken& cancel, Progress& progress) {
    switch (format) {
        case ExportFormat::ply:
            return export_as<PlySplats>(city, path, cancel, progress);
        case ExportFormat::gaussian:
            return export_as<GaussianSplats>(city, path, cancel, progress);
        case ExportFormat::plain_las:
            return export_as<PlainLasSplats>(city, path, cancel, progress);
        default:
            return export_as<LasSplats>(city, path, cancel, progress);
    }
}

}  // namespace citysplat::io
