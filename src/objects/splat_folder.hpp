#pragma once

#include "core/hash.hpp"
#include "model/splat_tile.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

namespace citysplat::objects {

/// A splat payload in a folder, as an index knows it.
struct StoredSplats {
    Hash128 name;  ///< hash of all bytes of the file
    std::uint64_t splats = 0, bytes = 0;
    std::array<double, 6> box{};  ///< min x y z, max x y z around all discs
};

/// A folder of splat payloads (tiling/store/splat_payload.hpp) named by the hash of their bytes: those of an
/// object bank, and of snapshots. Files appear whole and are never changed.
class SplatFolder {
  public:
    explicit SplatFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// Makes the folder if it is missing. `points` is how many the splats were made from. Threads may write
    /// the same splats at once; processes may not, which the lock of the index sees to.
    StoredSplats write(const SplatTile& splats, std::uint64_t points) const;
    /// Reads and verifies. Throws CorruptionError naming `what` and the damaged bytes.
    SplatTile read(const StoredSplats& stored, const std::string& what) const;
    std::filesystem::path path_of(const Hash128& name) const { return folder_ / (name.hex() + ".splats"); }

  private:
    std::filesystem::path folder_;
};

}  // namespace citysplat::objects
