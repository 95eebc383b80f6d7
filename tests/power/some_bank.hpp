#pragma once

#include "objects/bank.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::power {

/// Splats that only the object of that name has.
inline SplatTile splats_of(const std::string& name) {
    Splat splat{};
    splat.radius = 100;
    splat.normal = pack_normal({0, 0, 1});
    splat.x = name.at(0);
    return SplatTile(TileFrame{}, std::vector<Splat>(300, splat));
}

/// Adds objects to a bank, or makes one, as `bank build` does.
inline void add_objects(const std::filesystem::path& folder, const std::vector<std::string>& names) {
    objects::BankWriter bank(folder);
    for (const std::string& name : names) {
        objects::BankObject object;
        object.name = name;
        object.class_name = "car";
        object.size = {4, 2, 1.5};
        bank.add(object, splats_of(name));
    }
    bank.commit();
}

}  // namespace citysplat::power
