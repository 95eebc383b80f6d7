#pragma once

#include "splat/levels/level_cube.hpp"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace citysplat::splat {

/// Cubes on disk, for the next time that somebody looks: a directory for each key, which names the splats by
/// content, and a file for each cube (docs/formats.md). A cache of the user's, never part of a city.
///
/// Everything in it can be made again, so nothing here fails: what cannot be read, or is not what was
/// written, is removed and not found; what cannot be written is not kept. When it has more than its bytes,
/// the files not used for longest go. Safe to use from several threads; several processes may share a
/// directory.
class LevelStore {
  public:
    LevelStore(std::filesystem::path directory, std::uint64_t most_bytes);

    /// Nothing when it is not there or damaged.
    std::optional<LevelCube> find(const std::string& key, const CubeId& id);
    /// Requires a cube that is complete.
    void keep(const std::string& key, const LevelCube& cube);

    std::uint64_t used_bytes() const;

  private:
    std::filesystem::path path_of(const std::string& key, const CubeId& id) const;
    void make_room();

    std::filesystem::path directory_;
    std::uint64_t most_bytes_, used_bytes_ = 0, written_ = 0;
    mutable std::mutex mutex_;
};

}  // namespace citysplat::splat
