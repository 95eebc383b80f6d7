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

/// The same words with the content of the label file and of adjusted trajectories as it is now. A file that
/// is gone leaves them.
std::string refreshed_reading(const std::string& reading);

/// What the words mean. Throw CorruptionError when they mean nothing; BusyError when an adjusted trajectory
/// has another content than they say.
ReadOptions read_options_from(const std::string& reading);
TrajectoryOptions trajectory_options_from(const std::string& reading);

/// Opens files as the words say. Copies share what they remember: the trajectories of an adjustment are read
/// once. Threads: any.
class ReadingOpener {
  public:
    ReadingOpener();
    std::unique_ptr<PointFile> operator()(const std::filesystem::path& path,
                                          const std::string& reading) const;

  private:
    struct Memory;
    std::shared_ptr<Memory> memory_;
};
Trajectory trajectory_by_reading(const std::filesystem::path& path, const std::string& reading);

}  // namespace citysplat::io
