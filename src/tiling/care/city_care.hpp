#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"
#include "tiling/care/retention.hpp"
#include "tiling/store/catalog.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Looking after a city: integrity, garbage, the way back.
namespace citysplat::tiling {

struct Damage {
    std::string what;     ///< "tile 0/12/7", "points of /data/a.las", "generation 3", …
    Hash128 object;       ///< zero when rows of the catalog are meant
    std::string problem;  ///< "missing", "has 10 bytes instead of 20", "damaged"
};

struct VerifyReport {
    std::uint64_t checked = 0, checked_bytes = 0;
    std::vector<Damage> corrupt;
    std::vector<std::string> notes;  ///< odd, but no damage: the record of an interrupted publish
};

/// Checks every object of every generation: that it is there with its size, and with `deep` every byte of it
/// and every row of the catalog against what the objects say. Changes nothing. With `only` it looks at the
/// objects and rows of that generation.
VerifyReport verify_city(const std::filesystem::path& city, bool deep, const CancelToken& cancel,
                         Progress& progress, std::optional<std::int64_t> only = {});

/// Moves damaged objects of the latest generation to damaged/, so that the next build makes them again: tiles
/// when all points are whole, points when their input is still there as it was read. Nothing is deleted, and
/// what cannot be made again stays where it is. Returns how many were moved. Throws BusyError while somebody
/// builds.
std::uint64_t set_damaged_aside(const std::filesystem::path& city, const std::vector<Damage>& corrupt,
                                const CancelToken& cancel);

struct GarbageReport {
    std::vector<Verdict> verdicts;        ///< of all generations, with the rules that decided
    std::vector<std::int64_t> forgotten;  ///< generations
    std::vector<std::int64_t> pinned;     ///< old, but somebody reads them
    std::uint64_t objects = 0, freed_bytes = 0;
    std::uint64_t foreign = 0;  ///< files among the objects that are none: left alone
};

/// Forgets all generations but those that a rule keeps and those that readers hold, and removes every object
/// that neither a remaining generation nor a staged plan needs. A dry run writes nothing and takes no lock.
GarbageReport collect_garbage(const std::filesystem::path& city, const Retention& retention, bool dry_run);

/// Publishes the content of an earlier generation (default: the one before the latest) as a new one. Returns
/// its number.
std::int64_t roll_back(const std::filesystem::path& city, std::optional<std::int64_t> generation);

struct RepairReport {
    std::uint64_t sources = 0, generations = 0;
    std::uint64_t damaged_objects = 0;     ///< objects that do not match their names
    std::uint64_t set_aside = 0;           ///< of them: moved to damaged/, to be made again
    std::int64_t latest = 0;               ///< 0: no generation could be recovered, only points
    std::vector<std::string> lost_inputs;  ///< of the latest generation: build with them again
    std::vector<std::string> notes;        ///< generations that were left out, and why
    std::string old_catalog;               ///< where the catalog that was there is now
};

/// Rebuilds the catalog from the objects and puts it in the place of the old one by one rename; the old one
/// is kept beside it. Nothing is deleted: damaged objects that can be made again are moved to damaged/. The
/// next build makes the tiles again, and reads the lost inputs when it is given them.
RepairReport repair_city(const std::filesystem::path& city, const CancelToken& cancel);

}  // namespace citysplat::tiling
