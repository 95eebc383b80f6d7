#pragma once

#include <cstdint>
#include <string>

/// How QGIS draws the layers of a city: QML, the form in which it keeps styles.
namespace citysplat::gis {

/// Tiles that this generation brought stand out from those it kept.
std::string tiles_style(std::int64_t generation);
std::string inputs_style();
std::string trajectories_style();
std::string tile_changes_style();
std::string changes_style();

}  // namespace citysplat::gis
