#include "tiling/build/tile_maker.hpp"

#include "core/error.hpp"
#include "tiling/store/splat_payload.hpp"

#include <utility>

namespace citysplat::tiling {

namespace {

void add_box(Hasher& hasher, const LatticeBox& b) {
    hasher.number(b.min_x).number(b.min_y).number(b.max_x).number(b.max_y);
}

}  // namespace

Hash128 tile_key_hash(const TileKey& tile, const Region& region, const Hash128& parameters) {
    Hasher hasher;
    hasher.text("citysplat tile").hash(parameters);
    hasher.number(tile.level).number(tile.ix).number(tile.iy);
    if (tile.kind != ProductKind::splats) hasher.number(tile.kind);
    add_box(hasher, region.core);
    add_box(hasher, region.covered);
    hasher.number(region.frame.x_m).number(region.frame.y_m).number(region.frame.z_m);
    hasher.number(static_cast<std::uint64_t>(region.points.size()));
    if (region.removed > 0) hasher.number(region.removed);
    return hasher.bytes(std::as_bytes(std::span(region.points))).finish();
}

TileMaker::TileMaker(const Context& context) : c_(context) {
    for (const ProductKind kind : context.processor.kinds())
        parameters_[kind] = context.processor.of(kind).parameters_key();
}

TileMaker::Keyed TileMaker::read(const TileKey& tile, std::int64_t halo_steps) const {
    Keyed keyed;
    keyed.region = c_.points.read(c_.grid.core(tile), halo_steps);
    const Region& region = keyed.region;
    keyed.removed = region.removed;
    const LatticePoint origin = region.frame.origin();
    Hasher core;
    core.number(region.frame.z_m);
    // In pieces of some size: a hash takes its time for each piece, however small.
    constexpr std::size_t kPiece = 4096;
    std::vector<TilePoint> piece;
    piece.reserve(kPiece);
    const auto hash_piece = [&] {
        core.bytes(std::as_bytes(std::span(piece)));
        keyed.core_points += piece.size();
        piece.clear();
    };
    for (const TilePoint& p : region.points) {
        if (!region.core.contains(origin.x + p.x, origin.y + p.y)) continue;
        piece.push_back(p);
        if (piece.size() == kPiece) hash_piece();
    }
    hash_piece();
    keyed.core = core.finish();
    keyed.key = tile_key_hash(tile, region, parameters_.at(tile.kind));
    return keyed;
}

const ProductRow* TileMaker::find(const TileKey& tile, const Keyed& keyed) const {
    const auto found = c_.memo.find(keyed.key);
    if (found == c_.memo.end()) return nullptr;
    const ProductRow& product = found->second;
    // A row that does not fit what was read is damaged: the tile is made again and the row replaced.
    if (product.tile != tile || product.core != keyed.core || product.points != keyed.core_points)
        return nullptr;
    // Its points were read just now; reading the payload, too, costs little, and a damaged one is made again.
    const bool whole =
        payload_fits(c_.store, product) && (!product.object || c_.store.intact(*product.object));
    return whole ? &product : nullptr;
}

ProductRow TileMaker::write(const TileKey& tile, const Keyed& keyed, std::int64_t halo_steps,
                            const TileOutput& output) const {
    const TileProduct made =
        has_triangles(tile.kind) ? product_of(output.mesh, tile.kind) : product_of(output.splats);
    ProductRow product{.id = 0,
                       .key = keyed.key,
                       .core = keyed.core,
                       .tile = tile,
                       .object = {},
                       .object_bytes = 0,
                       .points = keyed.core_points,
                       .splats = made.items,
                       .halo_steps = halo_steps,
                       .digest = {},
                       .box = {},
                       .removed = keyed.removed};
    if (made.items == 0) return product;
    product.digest = made.digest;
    product.box = made.box;
    product.object = write_payload(c_.store, made,
                                   {.tile = tile,
                                    .key = keyed.key,
                                    .digest = product.digest,
                                    .points = keyed.core_points,
                                    .halo_steps = halo_steps,
                                    .box = product.box},
                                   product.object_bytes);
    return product;
}

MadeTile TileMaker::make(const PlannedTile& tile, MemoryScheduler::Grant& grant) const {
    const TileProcessor& processor = c_.processor.of(tile.key.kind);
    const std::int64_t usual_halo = processor.initial_halo_steps();
    MadeTile made;
    made.reason = tile.reason;
    std::int64_t halo = tile.previous ? tile.previous->halo_steps : usual_halo;
    Keyed keyed = read(tile.key, halo);
    const bool nothing_here = keyed.core_points == 0 && keyed.removed == 0;
    if (nothing_here && (processor.reach_steps() == 0 || keyed.region.points.empty())) return made;
    if (tile.previous && (tile.reason == Reason::new_tile))
        made.reason = keyed.core == tile.previous->core ? Reason::changed_halo : Reason::changed_core;
    if (halo != usual_halo && !find(tile.key, keyed)) keyed = read(tile.key, halo = usual_halo);
    for (;;) {
        if (const ProductRow* product = find(tile.key, keyed)) {
            made.how = MadeTile::How::reused;
            made.product = *product;
            return made;
        }
        c_.cancel.check();
        TileOutput output = processor.process(std::move(keyed.region), c_.cancel);
        if (output.certified()) {
            if (nothing_here && output.mesh.empty() && output.splats.empty()) return made;
            made.how = MadeTile::How::built;
            made.product = write(tile.key, keyed, halo, output);
            return made;
        }
        made.widened = true;
        halo = std::max(output.wanted_halo_steps, halo + kLatticePerMetre);
        if (halo > kMostHaloSteps)
            throw CorruptionError("tile " + tile.key.text() + ": not certified with a halo of " +
                                  std::to_string(kMostHaloSteps / kLatticePerMetre) +
                                  " m; please report this");
        keyed = {};
        output = {};
        const LatticeBox box = c_.grid.core(tile.key).widened(halo);
        grant.exchange(processor.estimated_bytes(c_.points.count_at_most(box)));
        keyed = read(tile.key, halo);
    }
}

}  // namespace citysplat::tiling
