#pragma once

#include "model/region/region.hpp"
#include "model/tile_source.hpp"
#include "view/ortho.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

class Context;

/// The flags of `render --ortho`.
struct OrthoFlags {
    bool ortho = false, per_tile = false;
    double resolution_m = 0.02;
    std::vector<double> heights_m;
    std::vector<const CLI::Option*> options;  ///< that have no meaning without --ortho

    void add_to(CLI::App& verb);
};

/// What a verb knows besides.
struct OrthoWish {
    std::shared_ptr<const TileSource> city;
    Region region;
    std::int64_t tile_size_m = 64;
    std::string out;
    view::OrthoOptions options;
};

/// Makes one picture, or one a tile and the mosaic of them, each with what says where it lies. Throws
/// UsageError when the pictures would be too large, or there is nothing to see.
void run_ortho(Context& context, const OrthoFlags& flags, OrthoWish wish);

}  // namespace citysplat::cli
