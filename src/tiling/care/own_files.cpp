#include "tiling/care/own_files.hpp"

#include "core/error.hpp"
#include "tiling/store/city_paths.hpp"

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

bool is_own_name(const CityPaths& paths, const fs::path& first) {
    const std::string name = first.filename().string();
    for (const fs::path& own : {paths.objects(), paths.plans(), paths.temporary(), paths.damaged(),
                                paths.lock(), paths.unpacking(), paths.root() / "mirror"})
        if (own.filename() == first.filename()) return true;
    return name.starts_with(paths.catalog().filename().string());  // and its journal
}

}  // namespace

void refuse_files_of_city(const fs::path& path) {
    fs::path below = fs::weakly_canonical(fs::absolute(path));
    for (; below.has_relative_path(); below = below.parent_path()) {
        const CityPaths paths(below.parent_path());
        if (paths.is_city() && is_own_name(paths, below))
            throw UsageError(path.string() + " is of the city in " + paths.root().string() +
                             "; give another name");
    }
}

}  // namespace citysplat::tiling
