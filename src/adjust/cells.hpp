#pragma once

#include "adjust/correction.hpp"
#include "adjust/patches.hpp"
#include "adjust/thickness.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace citysplat::adjust {

/// The corrections of all drives, with slots and knots counted through.
class Corrections {
  public:
    explicit Corrections(std::vector<Correction> drives);

    std::size_t drives() const { return drives_.size(); }
    Correction& drive(std::size_t index) { return drives_[index]; }
    const Correction& drive(std::size_t index) const { return drives_[index]; }
    std::size_t knots() const { return knots_; }
    std::size_t first_knot(std::size_t drive) const { return first_knots_[drive]; }
    std::size_t slots() const { return slots_.size(); }
    std::uint32_t first_slot(std::size_t drive) const { return first_slots_[drive]; }

    /// A slot's drive and its place among that drive's intervals.
    struct Slot {
        std::uint32_t drive, interval;
    };
    Slot slot(std::uint32_t index) const { return slots_[index]; }
    std::uint32_t first_knot_of_slot(std::uint32_t index) const {
        return static_cast<std::uint32_t>(first_knots_[slots_[index].drive]) + slots_[index].interval;
    }

  private:
    std::vector<Correction> drives_;
    std::vector<std::size_t> first_knots_;
    std::vector<std::uint32_t> first_slots_;
    std::vector<Slot> slots_;
    std::size_t knots_ = 0;
};

/// What one slot saw of a cell, where the present corrections put it.
struct SlotOfCell {
    Moments moments;
    Vec3d sensor_m;
    double time_s;
    double share;  ///< of the slot's interval
    std::uint32_t slot, drive;
};

/// Calls visit(slots) for each cell of a cubic grid that holds patches, in a fixed order; its slots are in
/// ascending order.
void for_each_cell(std::span<const Patch> patches, const Corrections& corrections, double cell_m,
                   const std::function<void(std::span<const SlotOfCell>)>& visit);

/// Joins the slots of each second of each drive. Replaces `out`.
void passes_of(std::span<const SlotOfCell> slots, std::vector<PassOfCell>& out);

/// What a patch takes while its square is looked at.
inline constexpr std::uint64_t kBytesPerPatch = 240;

/// Calls body(first, last) for ranges of squares whose patches, together, fit into the memory; a range has at
/// least one square.
void for_each_batch(const PatchStore& patches, std::uint64_t memory_bytes,
                    const std::function<void(std::size_t first, std::size_t last)>& body);

/// Thickness of the surfaces where the present corrections put them.
Thickness measure_thickness(const PatchStore& patches, const Corrections& corrections,
                            std::uint64_t memory_bytes, const CancelToken& cancel);

}  // namespace citysplat::adjust
