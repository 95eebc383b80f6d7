#include "power/disk_tree.hpp"

#include "core/file.hpp"

#include <algorithm>
#include <stdexcept>
#include <sys/stat.h>

namespace citysplat::power {

namespace fs = std::filesystem;

namespace {

std::uint64_t inode_of(const fs::path& path) {
    struct stat s {};
    if (::lstat(path.c_str(), &s) != 0) throw std::runtime_error("cannot stat " + path.string());
    return s.st_ino;
}

bool equal(const ContentPointer& a, const ContentPointer& b) {
    return a && b ? a->hash == b->hash && a->bytes == b->bytes : !a && !b;
}

}  // namespace

Hash128 hash_of(const DiskTree& tree) {
    Hasher hasher;
    for (const auto& [path, content] : tree)
        hasher.text(path).number(content != nullptr).hash(content ? content->hash : Hash128{});
    return hasher.finish();
}

void write_tree(const DiskTree& tree, const fs::path& root) {
    fs::create_directories(root);
    for (const auto& [path, content] : tree) {
        if (!content) {
            fs::create_directory(root / path);
            continue;
        }
        File file(root / path, File::Mode::create_new);
        file.append(content->bytes);
        file.close();
    }
}

DiskTree DiskSnapshot::tree() const {
    DiskTree tree;
    for (const Entry& entry : entries)
        if (!entry.path.empty()) tree.emplace(entry.path, entry.content);
    return tree;
}

DiskSnapshot read_snapshot(const fs::path& root) {
    DiskSnapshot snapshot{{{"", inode_of(root), nullptr}}};
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        if (!entry.is_directory() && !entry.is_regular_file())
            throw std::runtime_error(entry.path().string() + " is neither a file nor a directory");
        snapshot.entries.push_back(
            {entry.path().lexically_relative(root).string(), inode_of(entry.path()),
             entry.is_directory() ? nullptr : std::make_shared<Content>(read_file(entry.path()))});
    }
    std::sort(snapshot.entries.begin(), snapshot.entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return snapshot;
}

std::string difference(const DiskTree& expected, const DiskTree& actual) {
    for (const auto& [path, content] : expected) {
        const auto found = actual.find(path);
        if (found == actual.end()) return path + " is not there";
        if (!equal(content, found->second)) return path + " differs";
    }
    for (const auto& [path, content] : actual)
        if (!expected.contains(path)) return path + " should not be there";
    return {};
}

}  // namespace citysplat::power
