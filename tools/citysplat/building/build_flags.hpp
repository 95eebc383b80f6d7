#pragma once

#include "citysplat/input_flags.hpp"
#include "citysplat/thickness_report.hpp"
#include "io/input/tracked_file.hpp"
#include "mesh/city_recipe.hpp"
#include "tiling/build/build_options.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::cli {

class Context;

/// What `build` and `plan` are told about a city: its inputs, and what is to be made of them.
class BuildFlags {
  public:
    /// Registers the flags of this and of what it holds.
    void add_to(CLI::App& verb);

    const std::string& city() const { return city_; }
    bool has_note() const { return !note_.empty(); }
    const ThicknessGate& thickness() const { return thickness_; }
    mesh::CityRecipe recipe() const;
    /// Reads the inputs' folders, labels and tracks; says what was understood.
    tiling::BuildOptions options(const mesh::CityRecipe& recipe, const Context& context) const;

  private:
    mesh::CityRecipeChanges changes() const;
    std::vector<tiling::BuildInput> inputs(const Context& context) const;
    std::vector<tiling::BuildInput> inputs_of(const std::vector<std::string>& words,
                                              const std::string& trajectory_file,
                                              const Context& context) const;
    std::shared_ptr<const TrackedBoxes> tracked_boxes(const std::vector<InputSource>& sources,
                                                      const ReadOptions& reading,
                                                      const Context& context) const;

    std::string city_, trajectory_, tracks_, method_, classes_, params_, note_, products_;
    InputFlags reading_;
    TrajectoryFlags trajectory_reading_;
    ThicknessGate thickness_;
    std::vector<std::string> inputs_, remove_, mesh_params_;
    std::optional<double> voxel_m_;
    std::vector<std::vector<std::string>> drives_;
    std::int64_t tile_size_m_ = 0;
    double most_gone_percent_ = 5;
    bool exactly_ = false, resample_ = false, no_resample_ = false, carve_ = false, no_carve_ = false,
         recalibrate_ = false, measure_drift_ = false;
};

/// For verbs that make tiles.
void keep_memory_between_tiles(std::uint64_t memory_bytes);

}  // namespace citysplat::cli
