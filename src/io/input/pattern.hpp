#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::io {

/// The files and folders that a pattern of the shell (* ? [) matches, sorted. Throws IoError when a folder in
/// which some may be cannot be read: what nobody sees is not gone.
std::vector<std::filesystem::path> matches_of(const std::string& pattern);

}  // namespace citysplat::io
