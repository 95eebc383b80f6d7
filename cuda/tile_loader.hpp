#pragma once

#include "cuda/device_memory.hpp"
#include "cuda/trace_params_hd.hpp"
#include "model/splat_tile.hpp"
#include "trace/mesh_primitives.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

namespace citysplat::gpu {

/// What a resident tile, or the mesh of a part, keeps on the device.
struct LoadedTile {
    DeviceBuffer splats;  ///< discs or triangles, then facts
    DeviceBuffer accel;
    std::uint64_t traversable = 0;
    std::uint32_t count = 0;
    TileFrame frame;
    bool is_mesh = false;

    std::size_t bytes() const { return splats.bytes() + accel.bytes(); }
    const trace::TraceDisc* discs() const;          ///< nullptr for a mesh
    const trace::TraceTriangle* triangles() const;  ///< nullptr for a tile
    const trace::SplatFacts* facts() const;
};

/// The parts of a call, with their keys.
struct LoadedParts {
    DeviceBuffer tables;
    std::uint32_t count = 0;

    const PartView* views() const;
};

/// Tiles bound together: the table of their views, and one scene per neighbourhood.
struct LoadedScene {
    DeviceBuffer tables;  ///< SceneView per scene, then TileView per slot
    std::vector<DeviceBuffer> accels;
    std::uint32_t scene_count = 0;

    const SceneView* scenes() const;
    const trace::TileView* tiles() const;
};

/// Brings tiles and scenes onto the device, beside the tracing.
///
/// Protocol: all work goes through the load queue, one tile or scene at a time (a mutex), and is complete
/// when the call returns, so what it returns may be used by any queue and what it needed in between is free
/// again. Payloads travel through two pinned buffers in turns: the CPU fills one while the device empties the
/// other, and a buffer is filled again only after the mark behind its last copy.
class TileLoader {
  public:
    TileLoader(Device& device, DeviceMemory& memory, std::size_t staging_bytes);

    /// Decodes, bounds, builds and compacts. An empty tile takes no memory and has no traversable.
    LoadedTile load(const SplatTile& tile);
    LoadedTile load(const trace::MeshPrimitives& mesh);
    /// A scene with nothing in it but this, where its own frame is.
    DeviceBuffer build_shape(const LoadedTile& tile, std::uint64_t& traversable);
    /// The motions are still those of the host. No parts take no memory.
    LoadedParts load_parts(std::span<const PartView> parts);
    /// What LoadedTile::bytes() will be at most.
    std::size_t resident_bytes(std::uint32_t splats) const;

    /// Requires tiles that are not empty. Their slots are their places in `tiles`.
    LoadedScene bind(std::span<const LoadedTile* const> tiles);

  private:
    void upload(DeviceAddress to, std::span<const std::byte> bytes);
    void finish();  ///< waits for the load queue
    void build_accel(LoadedTile& tile, DeviceAddress boxes);
    DeviceBuffer build_scene(std::span<const TileInstance> instances, std::uint64_t& traversable);

    Device& device_;
    DeviceMemory& memory_;
    std::mutex mutex_;
    std::array<PinnedBuffer, 2> staging_;
    PinnedBuffer answer_;  ///< the compacted size comes back here
    unsigned turn_ = 0;
};

}  // namespace citysplat::gpu
