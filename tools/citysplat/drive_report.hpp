#pragma once

#include "io/drive/drive.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

/// What `info` tells about drives.
namespace citysplat::cli {

std::string page_of(const io::Drive& drive);
nlohmann::json json_of(const std::vector<std::shared_ptr<const io::Drive>>& drives);

}  // namespace citysplat::cli
