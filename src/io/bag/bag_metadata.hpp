#pragma once

#include "io/bag/mcap_writer.hpp"

#include <string>
#include <utility>
#include <vector>

namespace citysplat::io {

/// metadata.yaml of a rosbag2, version 5: what every ROS 2 from Humble on reads. `custom` is added under
/// custom_data, which readers of that version pass over.
std::string bag_metadata(const std::string& file_name, const std::vector<BagChannel>& channels,
                         const McapSummary& summary,
                         const std::vector<std::pair<std::string, std::string>>& custom);

}  // namespace citysplat::io
