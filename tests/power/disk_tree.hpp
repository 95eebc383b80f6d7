#pragma once

#include "core/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::power {

using Bytes = std::vector<std::byte>;

/// What a file holds. Shared between the many trees that hold the same file.
struct Content {
    explicit Content(Bytes b) : bytes(std::move(b)), hash(hash_bytes(bytes)) {}
    Bytes bytes;
    Hash128 hash;
};
using ContentPointer = std::shared_ptr<const Content>;

/// Files and directories by their path below a root: the content of a file, nothing for a directory. Sorted,
/// so that a directory comes before what is in it. The root itself is not in it.
using DiskTree = std::map<std::string, ContentPointer>;

/// Equal for equal trees.
Hash128 hash_of(const DiskTree& tree);

/// Makes the tree below a directory that is new or empty.
void write_tree(const DiskTree& tree, const std::filesystem::path& root);

/// A real directory with the inodes that the system gives its files; the root has the path "".
struct DiskSnapshot {
    struct Entry {
        std::string path;
        std::uint64_t inode = 0;
        ContentPointer content;  ///< nothing for a directory
    };
    std::vector<Entry> entries;  ///< sorted by path

    DiskTree tree() const;
};

DiskSnapshot read_snapshot(const std::filesystem::path& root);

/// The first path in which two trees differ, for people; empty when they are equal.
std::string difference(const DiskTree& expected, const DiskTree& actual);

}  // namespace citysplat::power
