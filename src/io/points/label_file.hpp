#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citysplat::io {

/// Labels of one cloud in a file of their own, one per record in file order:
///   .label        little-endian u32, label in the low 16 bits, instance in the high 16 (SemanticKITTI)
///   .npy          a one-dimensional NumPy array of integers; 32 bits and more as above when they exceed 16
///   .txt, .labels one whole number per line
class LabelFile {
  public:
    /// Throws InputError when the file is damaged or does not hold exactly `points` labels.
    LabelFile(const std::filesystem::path& path, std::uint64_t points);

    bool has_instances() const { return !instances_.empty(); }
    /// Labels of the records from `first` on. Requires them to exist.
    void fill(std::uint64_t first, std::span<std::uint16_t> labels, std::span<std::uint16_t> instances) const;

  private:
    void take(std::uint64_t index, std::int64_t value);
    void read_binary(const std::filesystem::path& path, std::uint64_t points);
    void read_numpy(const std::filesystem::path& path, std::uint64_t points);
    void read_text(const std::filesystem::path& path, std::uint64_t points);

    std::string name_;
    std::vector<std::uint16_t> labels_, instances_;
};

}  // namespace citysplat::io
