#pragma once

#include "model/track.hpp"

#include <filesystem>
#include <span>

namespace citysplat {

/// Writes our own CSV (docs/scenarios.md), which read_tracks() reads: positions to 0.1 mm, angles to 10⁻⁶
/// rad, times to a microsecond.
void write_tracks(const std::filesystem::path& path, std::span<const Track> tracks);

}  // namespace citysplat
