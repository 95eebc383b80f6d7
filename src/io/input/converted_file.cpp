#include "io/input/converted_file.hpp"

#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "io/crs/crs.hpp"
#include "io/crs/known_crs.hpp"

#include <cmath>

namespace citysplat::io {

namespace {

class ConvertedFile final : public PointFile {
  public:
    ConvertedFile(std::unique_ptr<PointFile> file, const Crs& target, bool salvage, std::string name)
        : file_(std::move(file)),
          name_(std::move(name)),
          salvage_(salvage),
          height_m_(file_->info().vertical_metres_per_unit),
          conversion_(file_->info().crs, target.text),
          info_(file_->info()) {
        info_.bounds_known = false;
        info_.notes.push_back("coordinates are converted from " + info_.crs_name + " (" + conversion_.way() +
                              ")");
        target.describe(info_);
        if (height_m_ != 1) info_.notes.push_back("heights are scaled to metres");
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return file_->block_count(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        file_->read_block(index, out);
        conversion_.convert(out.x, out.y);
        for (double& z : out.z) z *= height_m_;
        convert_sensors(out);
        convert_rays(out);
        std::vector<std::uint8_t> bad(out.size());
        std::size_t count = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (!on_earth(out.x[i]) || !on_earth(out.y[i]) || !on_earth(out.z[i])) bad[i] = 1, ++count;
        if (count == 0) return;
        if (!salvage_)
            throw InputError(name_ + ": " + std::to_string(count) + " points of block " +
                             std::to_string(index + 1) +
                             " have no place in the other system; --salvage leaves such points out");
        out.remove(bad);
        out.damaged += count;
    }

  private:
    static bool on_earth(double v) { return std::fabs(v) <= kMaxWorld_m; }

    void convert_sensors(PointBatch& out) const {
        if (out.sensor.empty()) return;
        std::vector<double> x, y;
        for (const Vec3d& s : out.sensor) x.push_back(s.x), y.push_back(s.y);
        conversion_.convert(x, y);
        for (std::size_t i = 0; i < out.sensor.size(); ++i)
            out.sensor[i] = {x[i], y[i], out.sensor[i].z * height_m_};
    }

    /// A ray goes through two places. One that has no place in the other system is left out.
    void convert_rays(PointBatch& out) const {
        constexpr double kAhead = 100;  // in the unit of the file: little beside the Earth
        if (out.empty_rays.empty()) return;
        std::vector<double> x, y;
        for (const PointBatch::EmptyRay& ray : out.empty_rays)
            for (const Vec3d& place : {ray.origin, ray.origin + kAhead * ray.direction})
                x.push_back(place.x), y.push_back(place.y);
        conversion_.convert(x, y);
        for (std::size_t i = 0; i < out.empty_rays.size(); ++i) {
            auto& [origin, direction, time_s, beam] = out.empty_rays[i];
            const double up = kAhead * direction.z * height_m_;
            origin = {x[2 * i], y[2 * i], origin.z * height_m_};
            const Vec3d way{x[2 * i + 1] - origin.x, y[2 * i + 1] - origin.y, up};
            direction = (1 / length(way)) * way;
        }
        std::erase_if(out.empty_rays, [](const PointBatch::EmptyRay& ray) {
            return !on_earth(ray.origin.x) || !on_earth(ray.origin.y) || !(length(ray.direction) < 2);
        });
    }

    std::unique_ptr<PointFile> file_;
    std::string name_;
    bool salvage_;
    double height_m_;
    CrsConversion conversion_;
    PointFileInfo info_;
};

}  // namespace

std::unique_ptr<PointFile> in_other_crs(std::unique_ptr<PointFile> file, const ReadOptions& options,
                                        const std::string& file_name) {
    const Crs target = crs_from_text(options.to_crs);
    if (target.metres_per_unit != 1 || target.vertical_metres_per_unit != 1)
        throw UsageError("--to-crs " + target.label() + ": a city is in metres, that system is not");
    const PointFileInfo& info = file->info();
    if (info.crs.empty())
        throw InputError(file_name + ": the file does not say its coordinate system; --crs EPSG:n does");
    if (same_crs(info.crs, target.text) && info.metres_per_unit == 1 && info.vertical_metres_per_unit == 1)
        return file;
    try {
        return std::make_unique<ConvertedFile>(std::move(file), target, options.salvage, file_name);
    } catch (const InputError& e) {
        throw InputError(file_name + ": " + e.what());
    }
}

}  // namespace citysplat::io
