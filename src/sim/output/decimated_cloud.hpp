#pragma once

#include "core/file.hpp"
#include "sim/output/scan_format.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace citysplat::sim {

/// The returns of many scans, of which one stays in each cube of a grid: the earliest, and of several at one
/// time the first by ray and return. What stays, and in which order, does not depend on the order of the
/// scans (optScan's merge of pairs does).
///
/// Cubes begin at multiples of their size in the world. Records lie in one file without a name until the end,
/// in blocks by their cubes: 256 piles, of which one is in memory at a time. 10⁹ records of a PLY file take
/// 0.5 GB.
class DecimatedCloud {
  public:
    /// `directory` is where the file is. The format must outlive it; `size_m` is above 0.
    DecimatedCloud(const std::filesystem::path& directory, const ScanFormat& format, double size_m);

    /// Adds the returns of a scan, in any order of scans.
    void add(const Scan& scan, const CloudLayout& layout);
    /// Hands over the records that stay, one after the other, and counts them.
    std::uint64_t finish(const std::function<void(std::span<const std::byte>)>& write);

  private:
    /// Records whose cubes have the same hash, up to its first bits.
    struct Pile {
        std::vector<std::byte> buffer{};  ///< what is not in the file yet
        struct Block {
            std::uint64_t offset, bytes;
        };
        std::vector<Block> blocks{};
    };
    void flush(Pile& pile);
    std::vector<std::byte> take(Pile& pile);

    const ScanFormat& format_;
    double size_m_;
    File file_;
    std::uint64_t file_bytes_ = 0;
    std::vector<Pile> piles_;
};

/// "1mm", "2.5cm", "0.01m" or "0.01" as metres. Throws UsageError naming `what` unless it is from 0.1 mm to
/// 1 km.
double parse_length(const std::string& text, const std::string& what);

}  // namespace citysplat::sim
