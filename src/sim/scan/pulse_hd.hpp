#pragma once

#include "sim/scan/return_hd.hpp"
#include "sim/sensor/beam_hd.hpp"

#include <cmath>
#include <cstdint>

/// From the echoes of a pulse's sub-rays to those that the sensor tells apart and reports.
namespace citysplat::sim {

/// What a sub-ray brings back.
struct SubEcho {
    Echo echo;
    double intensity;  ///< its share of the pulse's
    double energy;     ///< the same; a surface of intensity zero counts as the darkest that is not
    double slack_m;    ///< by how much a neighbour on the same slanted surface may be nearer
};

/// One or several sub-rays whose echoes the sensor cannot tell apart.
struct PulseEcho {
    Echo echo;  ///< `first` is what the strongest of them hit; the range is their mean by energy
    double intensity, energy;
};

/// The echoes of one pulse that are reported, in the order of the sensor's returns.
struct PulseEchoes {
    PulseEcho of[2];
    std::uint32_t count = 0;
};

/// Collects what the sub-rays of one pulse meet.
class PulseGatherer {
  public:
    CITYSPLAT_HD explicit PulseGatherer(const ReturnModel& model)
        : model_(model), pattern_(bundle_pattern(model.beam.rays)) {}

    CITYSPLAT_HD void add(std::uint32_t k, const Echo& echo, const trace::Ray& ray) {
        if (!echo.first) return;
        const Vec3d normal = vec_cast<double>(unpack_normal(echo.first->normal));
        const double along = std::fabs(dot(normal, vec_cast<double>(ray.direction)));
        const double cosine = along > 1 ? 1 : along < 1e-3 ? 1e-3 : along;
        const double brightness = measured_intensity(*echo.first, cosine, model_.intensity);
        const double weight = weight_of(pattern_, k);
        // One surface: seen from the farther of two neighbours, the range falls towards the nearer one by no
        // more than its slope here times the angle between them.
        const double slope = std::sqrt(1 - cosine * cosine) / cosine;
        const SubEcho sub{echo, weight * brightness, weight * (brightness < 1 ? 1 : brightness),
                          pattern_.spacing * static_cast<double>(model_.beam.spread) * echo.range_m * slope};
        std::uint32_t at = count_++;
        for (; at > 0 && sub.echo.range_m < echoes_[at - 1].echo.range_m; --at) echoes_[at] = echoes_[at - 1];
        echoes_[at] = sub;
    }

    CITYSPLAT_HD PulseEchoes reported() const {
        PulseEcho first{}, strongest{}, second{}, last{};
        for (std::uint32_t begin = 0; begin < count_;) {
            const std::uint32_t end = end_of(begin);
            last = joined(begin, end);
            if (begin == 0) first = last;
            if (last.energy > strongest.energy) {
                second = strongest;
                strongest = last;
            } else if (last.energy > second.energy) {
                second = last;
            }
            begin = end;
        }
        if (count_ == 0) return {};
        switch (model_.beam.mode) {
            case ReturnMode::first:
                return {{first, {}}, 1};
            case ReturnMode::last:
                return {{last, {}}, 1};
            case ReturnMode::dual: {
                const PulseEcho& other = last.echo.range_m > strongest.echo.range_m ? last : second;
                return {{strongest, other}, other.echo.first ? 2u : 1u};
            }
            default:
                return {{strongest, {}}, 1};
        }
    }

  private:
    /// Where the echoes end that cannot be told from the one at `begin`.
    CITYSPLAT_HD std::uint32_t end_of(std::uint32_t begin) const {
        std::uint32_t end = begin + 1;
        while (end < count_ && echoes_[end].echo.range_m - echoes_[end - 1].echo.range_m <=
                                   static_cast<double>(model_.beam.resolution_m) + echoes_[end].slack_m)
            ++end;
        return end;
    }
    CITYSPLAT_HD PulseEcho joined(std::uint32_t begin, std::uint32_t end) const {
        PulseEcho result{{nullptr, 0, 0}, 0, 0};
        double range_sum = 0, greatest = 0;
        for (std::uint32_t i = begin; i < end; ++i) {
            const SubEcho& sub = echoes_[i];
            if (sub.energy > greatest) {
                greatest = sub.energy;
                result.echo.first = sub.echo.first;
            }
            result.echo.hits += sub.echo.hits;
            result.intensity += sub.intensity;
            result.energy += sub.energy;
            range_sum += sub.energy * sub.echo.range_m;
        }
        result.echo.range_m = range_sum / result.energy;
        return result;
    }

    const ReturnModel& model_;
    const BundlePattern pattern_;
    SubEcho echoes_[kMostSubRays];  ///< by range; of equal ones in the order in which they came
    std::uint32_t count_ = 0;
};

/// As a return carries it.
CITYSPLAT_HD inline std::uint16_t whole_intensity(double value) {
    const double whole = std::floor(value + 0.5);
    return static_cast<std::uint16_t>(whole > 65535 ? 65535 : whole);
}

}  // namespace citysplat::sim
