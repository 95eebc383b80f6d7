#pragma once

#include <filesystem>

namespace citysplat::tiling {

/// Throws UsageError when the path is, or would be, among the files that make a city: what others write must
/// not replace them, whoever asks for it.
void refuse_files_of_city(const std::filesystem::path& path);

}  // namespace citysplat::tiling
