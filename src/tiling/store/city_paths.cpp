#include "tiling/store/city_paths.hpp"

#include "core/error.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

/// Where earlier versions of the program kept what plans/ has now.
constexpr const char* kEarlierPlans = "shards";
constexpr std::string_view kPrefix = "citysplat-", kSuffix = ".tmp", kJournal = "-journal";

/// True when the directory holds nothing but empty directories and a lock, with the names of a city's.
bool is_empty_layout(const CityPaths& paths) {
    for (const auto& entry : fs::directory_iterator(paths.root())) {
        const fs::path& path = entry.path();
        if (path == paths.lock() && entry.is_regular_file()) continue;
        if (!entry.is_directory()) return false;
        if (path == paths.temporary()) {
            for (const auto& file : fs::directory_iterator(path))
                if (!CityPaths::is_temporary_name(file.path().filename().string())) return false;
        } else if (path == paths.objects()) {
            for (const auto& directory : fs::directory_iterator(path))
                if (!directory.is_directory() || !fs::is_empty(directory.path())) return false;
        } else if ((path != paths.plans() && path.filename() != kEarlierPlans) || !fs::is_empty(path)) {
            return false;
        }
    }
    return true;
}

CityState look_at(const CityPaths& paths) {
    if (!fs::exists(paths.root())) return CityState::nothing;
    if (!fs::is_directory(paths.root())) return CityState::foreign;
    if (fs::is_empty(paths.root())) return CityState::nothing;
    if (paths.is_unpacking()) return CityState::unfinished_unpack;
    if (ObjectStore(paths).holds_objects()) return CityState::lost_catalog;
    return is_empty_layout(paths) ? CityState::layout : CityState::foreign;
}

}  // namespace

std::string host_name() {
    std::array<char, 64> name{};
    ::gethostname(name.data(), name.size() - 1);
    std::string host(name.data());
    for (char& c : host)
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')) c = '_';
    return host;
}

fs::path CityPaths::new_temporary() const {
    static const std::string process =
        host_name() + "-" + std::to_string(::getpid()) + "-" +
        std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    static std::atomic<std::uint64_t> number{0};
    return temporary() /
           (std::string(kPrefix) + process + "-" + std::to_string(number++) + std::string(kSuffix));
}

bool CityPaths::is_temporary_name(std::string_view name) {
    if (name.ends_with(kJournal)) name.remove_suffix(kJournal.size());
    return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

CityState state_of(const CityPaths& paths) {
    if (paths.is_city()) return CityState::city;
    const CityState seen = look_at(paths);
    // Another process may have made the city while we looked.
    return paths.is_city() ? CityState::city : seen;
}

void require_city(const CityPaths& paths) {
    const std::string city = paths.root().string();
    switch (state_of(paths)) {
        case CityState::city:
            return;
        case CityState::lost_catalog:
            throw ConfigError(city + " is a city that lost its catalog: run citysplat repair " + city);
        case CityState::unfinished_unpack:
            throw ConfigError(city + " was not unpacked to the end: run the same citysplat unpack again");
        case CityState::layout:
            throw ConfigError(city + ": nothing has been built yet");
        case CityState::nothing:
        case CityState::foreign:
            throw ConfigError(city + " is not a city; citysplat build makes one");
    }
}

}  // namespace citysplat::tiling
