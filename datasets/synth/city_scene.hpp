#pragma once

#include "datasets/synth/block.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Ray casting and nearest-surface queries in the static city. Embree only finds candidates: its boxes are
/// float and a millimetre too large, and every decision is made by the double arithmetic of
/// datasets/synth/primitives.hpp, with equal distances settled by (cell, kind, index). Embree picks its code
/// by CPU model; the answers do not follow it.
namespace citysplat::synth {

struct SceneHit {
    double t = 0;
    Vec3d normal{0, 0, 0};  ///< unit, towards the ray's origin
    Look look{};
};

struct SceneNearest {
    double distance_m = 0;
    Look look{};
};

/// A cell's surfaces with their index. Immutable; any number of threads may ask.
class BlockScene;

/// Makes blocks. Thread-safe.
class BlockFactory {
  public:
    /// `embree_config` as for rtcNewDevice, e.g. "isa=sse2": for the test that it does not matter.
    explicit BlockFactory(std::uint64_t seed, const char* embree_config = nullptr);
    ~BlockFactory();
    std::uint64_t seed() const { return seed_; }
    std::shared_ptr<const BlockScene> make(Cell cell) const;

    struct Device;

  private:
    std::uint64_t seed_;
    std::shared_ptr<const Device> device_;
};

/// The blocks around a place. Immutable; any number of threads may ask.
class CityScene {
  public:
    /// `centre` is the cell near which rays will start.
    CityScene(Cell centre, std::vector<std::shared_ptr<const BlockScene>> blocks);
    ~CityScene();

    /// First static surface on the ray (city coordinates) up to `t_max`.
    std::optional<SceneHit> intersect(const Ray& ray, double t_max) const;
    /// Nearest static surface up to `d_max`. Exact if all cells within d_max (plus kOverhang_m) are there.
    std::optional<SceneNearest> nearest(Vec3d p, double d_max) const;

  private:
    struct Top;
    std::unique_ptr<Top> top_;
};

/// Nothing of a cell sticks out of its square by more than this.
inline constexpr double kOverhang_m = 2.5;
/// The cells whose surfaces may lie within `reach_m` of the rectangle (seen from above), in order.
std::vector<Cell> cells_near(double x0, double y0, double x1, double y1, double reach_m);

/// Blocks made lately, a bounded number of them, and scenes of any of those. What is missing is made, several
/// blocks at once; the one not used for longest goes first. One thread at a time.
class BlockCache {
  public:
    explicit BlockCache(std::uint64_t seed, std::size_t capacity = 24, const char* embree_config = nullptr)
        : factory_(seed, embree_config), capacity_(capacity) {}
    /// A scene of exactly these cells; the same object again when they are those of the last call.
    std::shared_ptr<const CityScene> scene(Cell centre, std::span<const Cell> cells);
    std::size_t resident() const { return blocks_.size(); }

  private:
    struct Entry {
        std::shared_ptr<const BlockScene> block;
        std::uint64_t last_use;
    };
    void evict();

    BlockFactory factory_;
    std::size_t capacity_;
    std::map<Cell, Entry> blocks_;
    std::uint64_t clock_ = 0;
    std::shared_ptr<const CityScene> scene_;
    Cell centre_;
    std::vector<Cell> cells_;
};

}  // namespace citysplat::synth
