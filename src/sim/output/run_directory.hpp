#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::sim {

/// What a simulated run writes into its directory. run.toml there says it: without that file nobody could
/// tell our scans from those of a real drive.
struct RunManifest {
    bool complete = false;
    std::uint64_t scans = 0;         ///< as planned: files of scans are numbered from 0 to below it
    std::vector<std::string> parts;  ///< files of scans: "velodyne/*.bin"
    std::vector<std::string> files;  ///< the others: "poses.txt"
};

/// "000012".
std::string scan_name(std::uint64_t index);

/// The directory of one run while it is written. Protocol: run.toml is there, as incomplete, before the first
/// scan, and complete after everything else; the directory is locked in between. What an incomplete run left
/// is removed by the next one, a complete run only when that is asked for. Nothing is ever removed that no
/// run.toml names.
class RunDirectory {
  public:
    /// Makes the directory and room for a run. Throws UsageError when it holds another run (unless
    /// `overwrite`) or scans that are not of a run, BusyError when another process writes there.
    RunDirectory(std::filesystem::path directory, RunManifest manifest, bool overwrite);
    ~RunDirectory();
    RunDirectory(const RunDirectory&) = delete;
    RunDirectory& operator=(const RunDirectory&) = delete;

    const std::filesystem::path& path() const { return directory_; }
    /// Everything that the manifest names is there.
    void complete();

    /// Throws what the constructor would, and changes nothing.
    static void check(const std::filesystem::path& directory, bool overwrite);

  private:
    std::filesystem::path directory_;
    RunManifest manifest_;
    int lock_ = -1;
};

}  // namespace citysplat::sim
