#pragma once

#include "sim/scan/scan.hpp"

#include <cstdint>

namespace citysplat::sim {

/// Of one run.
inline constexpr std::uint64_t kMostScans = 10'000'000;

/// Where finished scans go. `consume` is called once per scan, from several threads, in any order; `conclude`
/// afterwards, in order of scans, from one thread.
class ScanSink {
  public:
    virtual ~ScanSink() = default;
    virtual void consume(const Scan& scan) = 0;
    virtual void conclude(const Scan& scan) = 0;
    /// All scans are there. Not called when the run fails.
    virtual void finish() {}
};

}  // namespace citysplat::sim
