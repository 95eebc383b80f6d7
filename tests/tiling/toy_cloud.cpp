#include "tiling/toy_cloud.hpp"

#include "core/file.hpp"
#include "core/math/rng_hd.hpp"

#include <algorithm>

namespace citysplat::test {

namespace {

constexpr std::size_t kBlockPoints = 700;

class CloudFile final : public PointFile {
  public:
    explicit CloudFile(const std::filesystem::path& path) : file_(path, File::Mode::read) {
        info_.format = "test cloud";
        info_.points = file_.size() / sizeof(CloudPoint);
    }
    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return (info_.points + kBlockPoints - 1) / kBlockPoints; }
    void read_block(std::size_t index, PointBatch& out) const override {
        std::vector<CloudPoint> points(std::min(kBlockPoints, info_.points - index * kBlockPoints));
        file_.read_at(index * kBlockPoints * sizeof(CloudPoint), std::as_writable_bytes(std::span(points)));
        out.clear();
        for (const CloudPoint& p : points) {
            out.x.push_back(p.x);
            out.y.push_back(p.y);
            out.z.push_back(p.z);
            out.gps_time.push_back(p.gps_time);
            out.label.push_back(p.label);
            out.intensity.push_back(p.intensity);
            out.withheld.push_back(static_cast<std::uint8_t>(p.withheld));
        }
    }

  private:
    File file_;
    PointFileInfo info_;
};

}  // namespace

void write_cloud(const std::filesystem::path& path, const std::vector<CloudPoint>& points) {
    FileWriter out(path);
    out.write(std::as_bytes(std::span(points)));
    out.finish();
}

std::unique_ptr<PointFile> open_cloud(const std::filesystem::path& path) {
    return std::make_unique<CloudFile>(path);
}

std::vector<CloudPoint> street(std::uint64_t seed, double x, double y, double length, double per_m2) {
    const auto n = static_cast<std::size_t>(length * 40 * per_m2);
    std::vector<CloudPoint> points(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t k = rng::key(seed, i);
        const auto u = [k](std::uint64_t c, double low, double high) {
            return rng::uniform(k, c, low, high);
        };
        CloudPoint& p = points[i];
        p.x = x + u(0, 0, length);
        const double kind = u(1, 0, 1);
        p.y = y + (kind < 0.6 ? u(2, 5, 35) : kind < 0.9 ? (u(2, 0, 1) < 0.5 ? 5.0 : 35.0) : u(2, 0, 40));
        p.z = kind < 0.6 ? u(3, -0.02, 0.02) : u(3, 0, 12);
        p.gps_time = p.x * 0.1;
        p.label = kind < 0.6 ? 1 : kind < 0.9 ? 2 : 3;
        p.intensity = static_cast<std::uint16_t>(u(4, 0, 65535));
    }
    return points;
}

}  // namespace citysplat::test
