#pragma once

#include "model/tile_source.hpp"
#include "model/trajectory.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace citysplat::view {

/// What the catalog of a city says, beyond what its tiles are: told by whoever opened it. Texts are shown to
/// people and may hold anything.
struct TileFacts {
    std::uint64_t points = 0;
    std::uint64_t removed = 0;        ///< points of things that moved
    std::int64_t built_in = 0;        ///< the generation that made it
    std::string problem;              ///< why it cannot be shown; empty: it can
    std::vector<std::size_t> inputs;  ///< that have points in it
    std::string why{};                ///< the build made it, in words; may be empty
    std::string object{};  ///< names its payload by content: equal objects have equal splats; may be empty
};

struct GenerationFacts {
    std::int64_t number = 0;
    std::string created, note;
};

struct CityFacts {
    std::string name;
    std::int64_t generation = 0;
    std::string created, note, digest;
    std::uint64_t points = 0;
    std::int64_t tile_size_m = 0;
    std::vector<TileFacts> tiles;  ///< as many as the source has
    std::vector<std::string> inputs;
    std::vector<GenerationFacts> history;
    Trajectory trajectory;  ///< to walk along; may be empty
};

/// Which inputs the points of a city come from. Safe to use from several threads.
class Provenance {
  public:
    static constexpr int kCellsAcross = 16;  ///< of 4 m, in a square of 64 m
    static constexpr std::uint16_t kUnknown = 0xffff;
    /// The input with most points in each cell of a square, row by row from the south-west; kUnknown: none.
    struct Square {
        std::int32_t x = 0, y = 0;  ///< of its corner, in squares
        std::array<std::uint16_t, std::size_t{kCellsAcross} * kCellsAcross> inputs{};
    };
    struct InputPoints {
        std::size_t input;  ///< place in CityFacts::inputs
        std::uint64_t points;
    };
    virtual ~Provenance() = default;
    virtual std::vector<Square> squares() const = 0;
    /// Inputs with points within a ball, those with most first. Throws CorruptionError.
    virtual std::vector<InputPoints> around(Vec3d centre, double radius_m) const = 0;
};

/// A city that is shown: its tiles and what is known of them. All outlive the server.
struct ShownCity {
    const TileSource& tiles;
    const CityFacts& facts;
    const Provenance* provenance = nullptr;  ///< may be missing

    /// Names the levels of detail of these splats: the same for the same splats.
    std::string levels_key() const;
};

/// Heights between which colours vary: robust against a few tiles that reach far up or down.
struct HeightRange {
    double low_m = 0, high_m = 1;
};
HeightRange height_range(const TileSource& city);

}  // namespace citysplat::view
