#pragma once

#include <filesystem>
#include <vector>

namespace citysplat::bench {

/// A fresh directory below TMPDIR that goes away with the object.
class ScratchDirectory {
  public:
    ScratchDirectory();
    ~ScratchDirectory();
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// The LAS files of a drive, sorted. Throws InputError when there is none, or no such directory.
std::vector<std::filesystem::path> las_files_of(const std::filesystem::path& drive);

}  // namespace citysplat::bench
