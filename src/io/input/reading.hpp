#pragma once

#include "io/input/input_list.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <filesystem>
#include <memory>
#include <string>

/// How an input is read, as words that a city keeps: JSON of everything that is not the default, empty when
/// all is. What it says is part of the identity of the source.
namespace citysplat::io {

std::string reading_of(const InputSource& source, const ReadOptions& options,
                       const TrajectoryOptions& trajectory);

/// The same words with the content of the label file as it is now. A label file that is gone leaves them.
std::string refreshed_reading(const std::string& reading);

/// What the words mean. Throw CorruptionError when they mean nothing.
ReadOptions read_options_from(const std::string& reading);
TrajectoryOptions trajectory_options_from(const std::string& reading);

/// Opens files as the words say.
std::unique_ptr<PointFile> open_by_reading(const std::filesystem::path& path, const std::string& reading);
Trajectory trajectory_by_reading(const std::filesystem::path& path, const std::string& reading);

}  // namespace citysplat::io
