#pragma once

#include "core/math/box.hpp"
#include "model/splat_tile.hpp"
#include "model/track.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What scenarios take from folders that other modules make: recorded frames of what moved, and objects of a
/// bank. Simulations see these interfaces only.
namespace citysplat {

/// A frame: what moved while one scan was recorded, as splats that exist in [begin, end).
struct FrameEntry {
    double begin_s, end_s;
    std::uint64_t splats;
    Box3d box;  ///< world, around all discs
    /// What Splat::instance counts: number i + 1 is the object that the source calls objects[i], which is
    /// (instance << 16 | label), increasing. Splats of number 0 belong to no object.
    std::span<const std::uint32_t> objects;
};

/// Frames sorted by begin. Immutable; safe to use from several threads.
class FrameSource {
  public:
    virtual ~FrameSource() = default;
    virtual std::size_t size() const = 0;
    virtual FrameEntry frame(std::size_t i) const = 0;
    /// Those that exist at a time of [begin, end].
    virtual std::vector<std::size_t> during(double begin_s, double end_s) const = 0;
    /// Reads and verifies a frame, in the world. Throws CorruptionError naming it when it is missing or
    /// damaged.
    virtual SplatTile load(std::size_t i) const = 0;
    /// For messages: the folder.
    virtual std::string name() const = 0;
};
using FrameSourcePtr = std::shared_ptr<const FrameSource>;

/// What somebody wants of a bank.
struct ObjectWish {
    std::string class_name;  ///< in the words of the bank; empty: any
    ObjectSize size;         ///< of the box to fill; zeros: any
    std::vector<double>
        azimuths_rad;  ///< from where it will be seen, in its own frame; empty: from all sides
    std::uint64_t seed = 0;
    std::string who;  ///< it is for: two who want the same need not get the same object
};

/// An object of a bank: splats in the frame that Track tells.
struct StoredObject {
    std::string name, class_name;
    ObjectSize size;
    SplatTile splats;
};

/// A bank of objects. Immutable; safe to use from several threads.
class ObjectSource {
  public:
    virtual ~ObjectSource() = default;
    /// The name of the object that suits best; nothing when there is none of the class.
    virtual std::optional<std::string> choose(const ObjectWish& wish) const = 0;
    /// Reads and verifies. Throws UsageError when nothing has the name, CorruptionError naming what is
    /// damaged.
    virtual StoredObject load(const std::string& name) const = 0;
    virtual std::vector<std::string> classes() const = 0;  ///< sorted
};
using ObjectSourcePtr = std::shared_ptr<const ObjectSource>;

/// Opens folders. Throws ConfigError when a folder is not what is asked for, CorruptionError when its index
/// is damaged.
class StoredThings {
  public:
    virtual ~StoredThings() = default;
    /// A folder of snapshots, or a city that has one.
    virtual FrameSourcePtr frames(const std::filesystem::path& folder) const = 0;
    virtual ObjectSourcePtr objects(const std::filesystem::path& folder) const = 0;
};

}  // namespace citysplat
