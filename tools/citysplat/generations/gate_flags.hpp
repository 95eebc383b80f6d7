#pragma once

#include "core/cancel.hpp"
#include "core/number_range.hpp"
#include "tiling/build/gate.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// The gates that hold two generations against each other, the same for all verbs that publish.
class GateFlags {
  public:
    void add_to(CLI::App& verb);
    /// How many tiles may fail; only where failed tiles can be published at all.
    void add_failed_to(CLI::App& verb);
    /// Those that the user asked for. The token must outlive them.
    std::vector<tiling::CandidateGate> gates(const CancelToken& cancel) const;

  private:
    static constexpr double kNone = -1;
    double changed_percent_ = kNone, splats_percent_ = kNone, distance_m_ = kNone, failed_ = kNone;
};

/// What gates measured: [{gate, value, most, holds, text}].
nlohmann::json gates_json(const std::vector<tiling::GateResult>& results);

}  // namespace citysplat::cli
