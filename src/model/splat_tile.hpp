#pragma once

#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "model/splat_hd.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace citysplat {

/// The splats of one tile as columns in one 64-byte-aligned buffer, which is also the body of the payload on
/// disk: a tile is read with one sequential read and used in place. 24 bytes a splat:
///
///   column      type   holds
///   x           u32    x steps (24 bits) | point count
///   y           u32    y steps (24 bits) | group
///   z           u32    z steps (24 bits) | mean range
///   normal      u32    octahedral 2 × 16 bits
///   radius      u16    lattice steps
///   label       u16
///   intensity   u16
///   incidence   u8
///   instance    u8     0: none
///
/// Each column starts on a multiple of 64 bytes. Splats are in Hilbert order.
class SplatTile {
  public:
    SplatTile() = default;
    SplatTile(TileFrame frame, std::size_t count);
    /// Packs `splats`. Requires |x|, |y|, |z| <= kMaxSplatSteps and radius >= 1.
    SplatTile(TileFrame frame, std::span<const Splat> splats);

    TileFrame frame() const { return frame_; }
    std::size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }

    std::span<const std::uint32_t> x() const { return column<std::uint32_t>(0); }
    std::span<const std::uint32_t> y() const { return column<std::uint32_t>(1); }
    std::span<const std::uint32_t> z() const { return column<std::uint32_t>(2); }
    std::span<const std::uint32_t> normal() const { return column<std::uint32_t>(3); }
    std::span<const std::uint16_t> radius() const { return column<std::uint16_t>(4); }
    std::span<const std::uint16_t> label() const { return column<std::uint16_t>(5); }
    std::span<const std::uint16_t> intensity() const { return column<std::uint16_t>(6); }
    std::span<const std::uint8_t> incidence() const { return column<std::uint8_t>(7); }
    std::span<const std::uint8_t> instance() const { return column<std::uint8_t>(8); }

    Splat splat(std::size_t i) const;
    Disc disc(std::size_t i) const { return unpack_disc(x()[i], y()[i], z()[i], normal()[i], radius()[i]); }

    /// The whole buffer, for reading and writing the payload. Padding bytes are zero.
    std::span<const std::byte> bytes() const { return {buffer_.get(), body_bytes(count_)}; }
    std::span<std::byte> mutable_bytes() { return {buffer_.get(), body_bytes(count_)}; }
    static std::size_t body_bytes(std::size_t count);

    /// Sum of the hashes of all splats in world terms: does not depend on order, tiling or frame.
    Hash128 digest() const;

  private:
    static constexpr std::size_t kColumns = 9;
    static std::size_t column_offset(std::size_t column, std::size_t count);
    template <class T>
    std::span<const T> column(std::size_t index) const {
        return {reinterpret_cast<const T*>(buffer_.get() + column_offset(index, count_)), count_};
    }
    struct Free {
        void operator()(std::byte* p) const;
    };

    TileFrame frame_;
    std::size_t count_ = 0;
    std::unique_ptr<std::byte[], Free> buffer_;
};

}  // namespace citysplat
