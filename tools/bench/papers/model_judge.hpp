#pragma once

#include "bench/papers/paper_drive.hpp"
#include "bench/papers/point_set.hpp"
#include "bench/papers/traced_model.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace citysplat::bench {

/// The thin things of the paper's table 3. Classes whose names contain one of these words are taken for it.
enum class Thin { fence, pole, sign };
inline constexpr std::array<const char*, 3> kThinWords{"fence", "pole", "sign"};

/// Means of distances, of all and of thin things.
class ThinMeans {
  public:
    void add(std::optional<Thin> thing, double d) {
        all_.add(d);
        if (thing) thin_[static_cast<std::size_t>(*thing)].add(d);
    }
    /// In centimetres; nothing where nothing was hit.
    std::optional<double> cm() const { return all_.cm(); }
    std::optional<double> cm(Thin thing) const { return thin_[static_cast<std::size_t>(thing)].cm(); }
    /// The mean of those that there are, as in the paper.
    std::optional<double> average_cm() const;

  private:
    struct Mean {
        double sum = 0, count = 0;
        void add(double d) { sum += d, ++count; }
        std::optional<double> cm() const {
            return count > 0 ? std::optional(100 * sum / count) : std::nullopt;
        }
    };
    Mean all_;
    std::array<Mean, kThinWords.size()> thin_;
};

/// What a model looks like to a LiDAR and a camera. Times are of CPU.
struct Seen {
    ThinMeans c2c, own_c2c, truth;
    double scan_cpu_s = 0, picture_cpu_s = 0;
    std::uint64_t hits = 0, rays = 0;
};

/// Looks at the models of one drive: from an HDL-64E on the vehicle, along the rays of the survey itself, and
/// from a camera of 2560 × 1440 pixels in the middle of the drive.
class ModelJudge {
  public:
    ModelJudge(const PaperDrive& drive, std::uint64_t scans);

    std::size_t points() const { return cloud_->points().size(); }
    Seen look(const TracedModel& model) const;

  private:
    void take_points();
    void add_own_ray(const TilePoint& p, Vec3d point);
    void make_scans(std::uint64_t count);
    void make_picture();
    void judge(const std::vector<trace::Ray>& rays, const std::vector<trace::Hit>& hits, ThinMeans& c2c,
               ThinMeans* truth) const;

    const PaperDrive& drive_;
    std::map<std::uint16_t, Thin> thin_;  ///< by label
    std::optional<PointSet> cloud_;
    std::vector<trace::Ray> own_, picture_;
    std::vector<std::vector<trace::Ray>> scans_;
};

}  // namespace citysplat::bench
