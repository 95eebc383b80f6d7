#pragma once

#include "compare/compare.hpp"
#include "core/output_file.hpp"
#include "io/write/field.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace citysplat::compare {

/// Simulated points with their distances as a PLY (docs/formats.md): any program shows them by `distance`,
/// and `view --distances` by `intensity`, which has it in tenths of a millimetre.
class DistanceFile {
  public:
    /// Throws as OutputFile does.
    explicit DistanceFile(const std::filesystem::path& path);
    void write(std::span<const PointDistance> points);
    /// Completes the header and gives the file its name.
    void commit();
    std::uint64_t points() const { return points_; }

  private:
    OutputFile file_;
    std::uint64_t points_ = 0;
    std::vector<std::byte> records_;
};

}  // namespace citysplat::compare
