#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::tiling {

/// What a directory's file system does of what cities rely on.
struct FilesystemReport {
    struct Check {
        std::string name;
        bool passed = false;
        std::string message;  ///< what went wrong and what to do, or what was seen
    };
    std::string type, mount;  ///< "ext4", "/data"; empty where the system does not say
    std::vector<Check> checks;

    bool is_safe() const;
};

/// Tries in `directory` what processes of several hosts rely on: exclusive creation, atomic replacement,
/// durability, times, locks; and reads the options of its mount. Leaves nothing behind. Throws IoError when
/// nothing can be created there.
FilesystemReport check_filesystem(const std::filesystem::path& directory);

/// Throws ConfigError that names what is missing and the option to set.
void require_safe_filesystem(const std::filesystem::path& directory);

}  // namespace citysplat::tiling
