#pragma once

#include "core/cancel.hpp"
#include "sim/scan/ray_batch.hpp"
#include "sim/scan/scan.hpp"
#include "sim/scan/scanner.hpp"
#include "sim/traffic/scan_parts.hpp"
#include "trace/resident_city.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace citysplat::sim {

/// Some scans of one sensor whose tiles are resident together, on their way from rays to returns.
struct ScanGroup {
    std::vector<ScanRays> rays;
    std::vector<Scan> scans;
    std::vector<std::vector<Firing>> firings;  ///< lists of patterns that do not repeat
    std::vector<ScanParts> parts;
};

/// The tiles that the rays of a group can meet.
struct GroupTiles {
    std::vector<std::uint32_t> tiles;
    bool fit = true;  ///< together into the budget; otherwise the group is one scan
    /// What to load while the group is traced: asked once the group's own tiles are there.
    std::function<std::vector<std::uint32_t>()> upcoming{};
};

/// Fires the rays of groups and makes their returns. Used by one thread at a time; works with all.
class GroupScanner {
  public:
    explicit GroupScanner(trace::ResidentCity& city);
    ~GroupScanner();

    /// Requires a group that is not empty. Returns how many passes over tiles it took.
    std::uint64_t fire(ScanGroup& group, GroupTiles tiles, const CancelToken& cancel);

  private:
    /// How many pulses of a group make as many rays as the tracer wants at a time.
    std::size_t batch_pulses(const ScanGroup& group);
    /// All tiles are there: returns are made at once.
    void trace_at_once(ScanGroup& group, const trace::TileSet& tiles, const CancelToken& cancel);
    /// One scan, whose tiles come in several sets, front to back; hits are kept between them.
    struct KeptHits {
        std::vector<trace::Hit> hits;       ///< if the depth is 1
        std::vector<trace::HitList> lists;  ///< otherwise
    };
    void trace_pass(ScanGroup& group, const trace::ResidentCity::Pass& pass, KeptHits& kept,
                    const CancelToken& cancel);
    void sort_by_distance(const ScanGroup& group, std::vector<std::uint32_t>& tiles) const;
    void mark_missing(ScanGroup& group, std::span<const std::uint32_t> tiles, const CancelToken& cancel);

    trace::ResidentCity& city_;
    struct Batches;  ///< one for each thread
    std::unique_ptr<Batches> batches_;
};

}  // namespace citysplat::sim
