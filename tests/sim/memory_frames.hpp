#pragma once

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "model/assembled/stored_things.hpp"

#include <atomic>
#include <set>
#include <vector>

namespace citysplat::test {

/// Frames made when they are asked for: in each a wall of discs at another place, so that any number of them
/// takes no memory.
class MemoryFrames final : public FrameSource {
  public:
    struct Layout {
        std::size_t count = 10;
        double begin_s = 100, period_s = 0.1;
        Vec3d first{0, 0, 0};   ///< middle of the wall of the first frame
        Vec3d step{0.5, 0, 0};  ///< from one to the next; it goes back after 16 frames
        std::uint32_t discs = 400;
        std::vector<std::uint32_t> objects{};  ///< the wall is cut into so many, and one that is none
    };
    explicit MemoryFrames(Layout layout) : layout_(std::move(layout)) {}

    std::size_t size() const override { return layout_.count; }
    FrameEntry frame(std::size_t i) const override {
        const Vec3d middle = middle_of(i), reach{1.2, 1.2, 1.2};
        const auto k = static_cast<double>(i);
        return {layout_.begin_s + k * layout_.period_s,
                layout_.begin_s + (k + 1) * layout_.period_s,
                layout_.discs,
                {middle - reach, middle + reach},
                layout_.objects};
    }
    std::vector<std::size_t> during(double begin_s, double end_s) const override {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < size(); ++i)
            if (frame(i).begin_s <= end_s && frame(i).end_s > begin_s) found.push_back(i);
        return found;
    }
    SplatTile load(std::size_t i) const override {
        ++loads;
        if (damaged.contains(i)) throw CorruptionError("frame " + std::to_string(i) + " is damaged");
        const Vec3d middle = middle_of(i);
        const TileFrame frame{to_whole_metres(middle.x), to_whole_metres(middle.y),
                              to_whole_metres(middle.z)};
        const Vec3d origin = frame.origin_m();
        std::vector<Splat> splats;
        for (std::uint32_t k = 0; k < layout_.discs; ++k) {
            const double u = 2 * rng::uniform(5, 3 * k) - 1, v = 2 * rng::uniform(5, 3 * k + 1) - 1;
            Splat s{};
            s.x = static_cast<std::int32_t>(to_lattice(middle.x - origin.x));
            s.y = static_cast<std::int32_t>(to_lattice(middle.y + u - origin.y));
            s.z = static_cast<std::int32_t>(to_lattice(middle.z + v - origin.z));
            s.normal = pack_normal({-1, 0, 0});
            s.radius = static_cast<std::uint16_t>(to_lattice(0.1));
            s.label = 13, s.intensity = 20000, s.point_count = 1, s.range = 10;
            s.instance = static_cast<std::uint8_t>(k % (layout_.objects.size() + 1));
            splats.push_back(s);
        }
        return SplatTile(frame, splats);
    }
    std::string name() const override { return "frames in memory"; }

    Vec3d middle_of(std::size_t i) const {
        return layout_.first + static_cast<double>(i % 16) * layout_.step;
    }

    mutable std::atomic<int> loads{0};
    std::set<std::size_t> damaged;

  private:
    static std::int64_t to_whole_metres(double m) { return floor_div(to_lattice(m), kLatticePerMetre); }
    Layout layout_;
};

}  // namespace citysplat::test
