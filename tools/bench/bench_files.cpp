#include "bench/bench_files.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>

namespace citysplat::bench {

ScratchDirectory::ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "citysplat-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw IoError("cannot make a directory like " + pattern);
    path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<std::filesystem::path> las_files_of(const std::filesystem::path& drive) {
    if (!std::filesystem::is_directory(drive))
        throw InputError("there is no directory " + drive.string() + "; citysplat synth makes a drive");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(drive))
        if (entry.path().extension() == ".las") files.push_back(entry.path());
    if (files.empty())
        throw InputError(drive.string() + " holds no .las file; citysplat synth makes a drive");
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace citysplat::bench
