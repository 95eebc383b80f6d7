#pragma once

#include "run_json.hpp"
#include "temp_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace citysplat::test {

/// The payload of a city with the most splats.
inline std::filesystem::path largest_payload_of(const std::string& city) {
    std::filesystem::path largest;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(city + "/objects")) {
        char magic[8] = {};
        if (!entry.is_regular_file() || !std::ifstream(entry.path()).read(magic, 8)) continue;
        if (std::string(magic, 8) != "CSPLATS\n") continue;
        if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest))
            largest = entry.path();
    }
    return largest;
}

/// A short synthetic drive and the city made of it, in many small tiles, by the real program.
struct SmallCity {
    TempDir dir;
    std::string drive = dir / "drive", city = dir / "city", trajectory = drive + "/trajectory.tum";
    nlohmann::json built;

    std::string tile_m;

    explicit SmallCity(std::string tile_size_m = "32") : tile_m(std::move(tile_size_m)) {
        run_json({"synth", drive, "--length", "16", "--points-per-metre", "3000", "--seed", "5"});
        built = run_json(build_command());
    }
    std::vector<std::string> build_command() const {
        return {"build",     city,        drive,         "--trajectory", trajectory,
                "--classes", "synthetic", "--tile-size", tile_m};
    }

    std::filesystem::path largest_payload() const { return largest_payload_of(city); }
    /// Flips a bit in the middle of that payload.
    void damage() const {
        const auto path = largest_payload();
        const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
        std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                                     std::filesystem::perm_options::add);
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(middle);
        const char byte = static_cast<char>(file.get() ^ 4);
        file.seekp(middle);
        file.put(byte);
    }
};

}  // namespace citysplat::test
