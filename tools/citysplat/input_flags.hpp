#pragma once

#include "io/input/input_list.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// The flags that say how clouds are read, the same for every verb that reads some (docs/inputs.md).
class InputFlags {
  public:
    void add_to(CLI::App& verb);
    /// After parsing. Throws UsageError.
    ReadOptions read_options() const;
    const std::filesystem::path& labels() const { return labels_; }
    /// The same, with the points where --adjusted puts them. `trajectory` is the verb's own; it may be empty.
    ReadOptions read_options(const std::filesystem::path& trajectory, const TrajectoryOptions& how) const;
    /// After parsing. `has_trajectory`: the verb was given one for these inputs.
    io::DriveOptions drive_options(bool has_trajectory = false) const;

  private:
    void add_drive_flags(CLI::App& verb);
    void add_mask_flags(CLI::App& verb);

    std::string units_ = "refuse", reader_ = "auto", crs_, to_crs_, columns_;
    std::vector<double> intensity_range_;
    std::filesystem::path labels_, adjusted_;
    bool salvage_ = false, ignore_bounds_ = false;
    bool no_drive_ = false, no_own_car_ = false;
    std::string compensated_ = "auto", spin_ = "auto", scene_;
    double rate_hz_ = 0, min_range_m_ = 0, max_range_m_ = 0;
    std::vector<double> origin_;
    std::vector<std::string> mask_boxes_;
};

/// The flags that say how a trajectory is read. `--trajectory` itself belongs to the verb.
class TrajectoryFlags {
  public:
    void add_to(CLI::App& verb);
    /// After parsing. Throws UsageError.
    TrajectoryOptions options() const;

  private:
    std::string format_ = "auto", angles_ = "from-names";
    std::vector<std::string> columns_;
    std::vector<double> position_offset_m_;
    double time_offset_s_ = 0;
    int gps_week_ = -1, epsg_ = 0;
    bool adjusted_ = false, allow_gaps_ = false;
};

}  // namespace citysplat::cli
