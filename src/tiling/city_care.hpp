#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/catalog.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Looking after a city: integrity, garbage, the way back.
namespace citysplat::tiling {

struct Damage {
    std::string what;  ///< "tile 0/12/7", "points of /data/a.las", …
    Hash128 object;
    std::string problem;  ///< "missing", "has 10 bytes instead of 20", "damaged"
};

struct VerifyReport {
    std::uint64_t checked = 0, checked_bytes = 0;
    std::vector<Damage> corrupt;
    bool set_aside = false;  ///< damaged objects were removed, so that the next build makes them again
};

/// Checks every object of every generation: that it is there with its size, and with `deep` every byte of it.
/// What is damaged is taken out of the store when nobody builds and the city can be written, so that the next
/// build repairs it.
VerifyReport verify_city(const std::filesystem::path& city, bool deep, const CancelToken& cancel,
                         Progress& progress);

struct GarbageReport {
    std::vector<std::int64_t> forgotten;  ///< generations
    std::vector<std::int64_t> pinned;     ///< old, but somebody reads them
    std::uint64_t objects = 0, freed_bytes = 0;
};

/// Forgets all but the newest `keep` generations and those that readers hold, and removes every object that
/// no remaining generation needs. Requires keep >= 1.
GarbageReport collect_garbage(const std::filesystem::path& city, std::size_t keep, bool dry_run);

/// Publishes the content of an earlier generation (default: the one before the latest) as a new one. Returns
/// its number.
std::int64_t roll_back(const std::filesystem::path& city, std::optional<std::int64_t> generation);

struct RepairReport {
    std::uint64_t sources = 0, generations = 0, damaged_objects = 0;
    std::int64_t latest = 0;
    std::vector<std::string> lost_inputs;  ///< of the latest generation: build with them again
};

/// Rebuilds the catalog from the objects. The old one is kept as catalog.sqlite.before-repair. Damaged
/// objects are removed; the next build makes the tiles again, and reads the lost inputs when it is given
/// them.
RepairReport repair_city(const std::filesystem::path& city, const CancelToken& cancel);

}  // namespace citysplat::tiling
