#include "sim/output/export.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "sim/output/las_header.hpp"
#include "sim/output/scan_format.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace citysplat::sim {

namespace {

/// A splat in the world.
struct ExportSplat {
    Vec3d centre;
    Vec3f normal;
    float radius_m;
    Splat splat;
};

class SplatFormat {
  public:
    virtual ~SplatFormat() = default;
    /// The same length whatever the summary.
    virtual std::string header(const CloudSummary& summary, Vec3d offset_m, const std::string& crs) const = 0;
    virtual std::size_t record_bytes() const = 0;
    virtual void record(std::byte*& at, const ExportSplat& s, Vec3d offset_m) const = 0;
};

std::string count_text(std::uint64_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "%012llu", static_cast<unsigned long long>(n));
    return text;
}

class PlySplats final : public SplatFormat {
  public:
    std::string header(const CloudSummary& summary, Vec3d, const std::string&) const override {
        return "ply\nformat binary_little_endian 1.0\ncomment citysplat splats: discs with centre, normal, "
               "radius\n"
               "element vertex " +
               count_text(summary.points) +
               "\nproperty double x\nproperty double y\nproperty double z\n"
               "property float nx\nproperty float ny\nproperty float nz\nproperty float radius\n"
               "property ushort label\nproperty ushort intensity\nproperty uchar group\n"
               "property uchar point_count\nproperty uchar acquired_range_m\nproperty uchar "
               "acquired_incidence\n"
               "property uchar frame\nend_header\n";
    }
    std::size_t record_bytes() const override { return 24 + 12 + 4 + 4 + 5; }
    void record(std::byte*& at, const ExportSplat& s, Vec3d) const override {
        put(at, s.centre);
        put(at, s.normal);
        put(at, s.radius_m);
        put(at, s.splat.label);
        put(at, s.splat.intensity);
        put(at, s.splat.group);
        put(at, s.splat.point_count);
        put(at, s.splat.range);
        put(at, s.splat.incidence);
        put(at, s.splat.frame);
    }
};

/// Positions are relative to the first tile's frame (viewers keep float), named in a comment. A disc becomes
/// a Gaussian whose 2σ is the radius; colour is the intensity as the constant term of spherical harmonics.
class GaussianSplats final : public SplatFormat {
  public:
    std::string header(const CloudSummary& summary, Vec3d offset_m, const std::string&) const override {
        char offset[160];
        std::snprintf(offset, sizeof offset, "comment offset %.0f %.0f %.0f\n", offset_m.x, offset_m.y,
                      offset_m.z);
        return "ply\nformat binary_little_endian 1.0\ncomment citysplat splats as 2-D Gaussians\n" +
               std::string(offset) + "element vertex " + count_text(summary.points) +
               "\nproperty float x\nproperty float y\nproperty float z\n"
               "property float nx\nproperty float ny\nproperty float nz\n"
               "property float f_dc_0\nproperty float f_dc_1\nproperty float f_dc_2\nproperty float opacity\n"
               "property float scale_0\nproperty float scale_1\n"
               "property float rot_0\nproperty float rot_1\nproperty float rot_2\nproperty float "
               "rot_3\nend_header\n";
    }
    std::size_t record_bytes() const override { return 16 * 4; }
    void record(std::byte*& at, const ExportSplat& s, Vec3d offset_m) const override {
        put(at, vec_cast<float>(s.centre - offset_m));
        put(at, s.normal);
        constexpr float kHarmonic = 0.28209479177387814f;
        const float colour = (static_cast<float>(s.splat.intensity) / 65535.0f - 0.5f) / kHarmonic;
        for (int i = 0; i < 3; ++i) put(at, colour);
        put(at, 4.0f);  // logit of 98 % opacity
        const float scale = std::log(s.radius_m * 0.5f);
        put(at, scale);
        put(at, scale);
        put_rotation(at, s.normal);
    }

  private:
    /// Shortest rotation from z to the normal: (w, x, y, z) ∝ (1 + n.z, −n.y, n.x, 0).
    static void put_rotation(std::byte*& at, Vec3f n) {
        float w = 1 + n.z, x = -n.y, y = n.x;
        if (w < 1e-6f) w = 0, x = 1, y = 0;
        const float inverse = 1 / std::sqrt(w * w + x * x + y * y);
        put(at, w * inverse);
        put(at, x * inverse);
        put(at, y * inverse);
        put(at, 0.0f);
    }
};

class LasSplats final : public SplatFormat {
  public:
    std::string header(const CloudSummary& summary, Vec3d offset_m, const std::string& crs) const override {
        static constexpr std::array<Field, 6> kFields{
            {{"radius", FieldType::f32, "metres"},
             {"nx", FieldType::f32, "normal"},
             {"ny", FieldType::f32, ""},
             {"nz", FieldType::f32, ""},
             {"label", FieldType::u16, "semantic class"},
             {"group", FieldType::u8, "0 ground 1 surface 2 linear 3 other"}}};
        return las_header({kFields, offset_m, crs, "splats"}, summary);
    }
    std::size_t record_bytes() const override { return kLasPointBytes + 19; }
    void record(std::byte*& at, const ExportSplat& s, Vec3d offset_m) const override {
        put_las_point(at, {s.centre, offset_m, s.splat.intensity, s.splat.label, s.splat.point_count, 0});
        put(at, s.radius_m);
        put(at, s.normal);
        put(at, s.splat.label);
        put(at, s.splat.group);
    }
};

std::unique_ptr<SplatFormat> make_format(ExportFormat format) {
    switch (format) {
        case ExportFormat::ply:
            return std::make_unique<PlySplats>();
        case ExportFormat::gaussian:
            return std::make_unique<GaussianSplats>();
        default:
            return std::make_unique<LasSplats>();
    }
}

}  // namespace

ExportFormat export_format_from(const std::string& name) {
    if (name == "ply") return ExportFormat::ply;
    if (name == "2dgs") return ExportFormat::gaussian;
    if (name == "las") return ExportFormat::las;
    throw UsageError("export format \"" + name + "\" is not one of ply, 2dgs, las");
}

std::uint64_t export_splats(const TileSource& city, ExportFormat kind, const std::filesystem::path& path,
                            const CancelToken& cancel, Progress& progress) {
    const auto format = make_format(kind);
    Vec3d offset{0, 0, 0};
    if (!city.tiles().empty()) {
        const Vec3d m = city.tiles()[0].min;
        offset = {std::floor(m.x), std::floor(m.y), std::floor(m.z)};
    }
    CloudSummary summary;
    OutputFile file(path);
    FileWriter& out = file.writer();
    out.text(format->header(summary, offset, city.crs()));
    Progress::Stage stage(progress, "export", city.tiles().size(), "tiles");
    std::vector<std::byte> records;
    for (std::size_t t = 0; t < city.tiles().size(); ++t) {
        cancel.check();
        const SplatTile tile = city.load(t);
        const TileFrame f = tile.frame();
        const Vec3d origin{static_cast<double>(f.x_m), static_cast<double>(f.y_m),
                           static_cast<double>(f.z_m)};
        records.resize(tile.size() * format->record_bytes());
        std::byte* at = records.data();
        for (std::size_t i = 0; i < tile.size(); ++i) {
            const Disc disc = tile.disc(i);
            const ExportSplat splat{origin + vec_cast<double>(disc.centre), disc.normal, disc.radius,
                                    tile.splat(i)};
            format->record(at, splat, offset);
            summary.add(splat.centre);
        }
        out.write(records);
        stage.advance(1);
    }
    const std::string header = format->header(summary, offset, city.crs());
    out.patch(0, std::as_bytes(std::span(header)));
    file.commit(true);
    return summary.points;
}

}  // namespace citysplat::sim
