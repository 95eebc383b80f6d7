#pragma once

#include "power/disk_tree.hpp"
#include "power/operation_log.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::power {

/// What a file system promises about names.
enum class NameModel {
    /// A journal of names: they reach the disk in their order, and every fsync commits all before it.
    ordered,
    /// A name is durable after an fsync of its directory and not before; until then each change of a name is
    /// kept or lost by itself. A file renamed from one directory to another has two such changes. Harsher
    /// than any file system in use.
    unordered
};

/// What of the unsynced work a power cut leaves.
struct Survival {
    enum class Kind {
        nothing,
        names,  ///< every name, none of the data: the classic empty file
        data,   ///< the data of the files whose names are durable
        everything,
        mixture  ///< by a seed: names as the model allows; writes kept, lost, torn at 512 bytes or zeroed
    };
    Kind kind = Kind::nothing;
    std::uint64_t seed = 0;
};

std::string text_of(const Survival& survival);

/// A disk in memory that knows what a power cut may leave of it. Data is durable after an fsync of its file
/// in both models; what was written since is a list of changes that survive independently.
class ModelDisk {
  public:
    ModelDisk(const DiskSnapshot& durable, NameModel model);

    /// Throws on an operation that is not known or makes no sense here: the log is not complete then.
    void apply(const Operation& operation);

    /// The live files are those of a directory with the same paths: operations mean them by its inodes now.
    void take_inodes_of(const DiskSnapshot& directory);

    /// The disk as the running program sees it.
    DiskTree live() const;
    /// The disk after a cut at this moment.
    DiskTree after_cut(const Survival& survival) const;

  private:
    using NodeId = std::size_t;
    using Names = std::map<std::string, NodeId>;

    struct DataChange {
        bool is_truncate = false;
        std::uint64_t offset = 0;  ///< size, when it is a truncate
        Bytes data;
    };
    struct Node {
        bool is_directory = false;
        ContentPointer durable;
        Bytes live;
        std::vector<DataChange> unsynced;
        Names durable_names, live_names;
    };
    /// A name of a directory that now means another file, or none.
    struct NameChange {
        NodeId directory = 0;
        std::string name;
        std::optional<NodeId> child;
    };
    /// Changes that are kept or lost together.
    using NameOperation = std::vector<NameChange>;

    struct Place {
        NodeId directory;
        std::string name;
    };
    class Chance;

    Place place_of(const std::string& path) const;
    NodeId child_at(const Place& place) const;
    NodeId file_of(const Operation& operation) const;
    void add(const Operation& operation, bool is_directory);
    void rename(const Operation& operation);
    void change_names(NameOperation operation);
    void write(Node& node, const Operation& operation);
    void sync(NodeId id);
    static void apply_change(Names& names, const NameChange& change);
    static void apply_change(Bytes& bytes, const DataChange& change);
    static void apply_by_chance(Bytes& bytes, const DataChange& change, Chance& chance);
    ContentPointer content_after(const Node& node, const Survival& survival, Chance& chance) const;

    NameModel model_;
    std::vector<Node> nodes_;                        ///< the root is the first
    std::map<std::uint64_t, NodeId> node_of_inode_;  ///< the latest bearer of each number
    std::vector<NameOperation> unsynced_names_;
};

}  // namespace citysplat::power
