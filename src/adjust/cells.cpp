#include "adjust/cells.hpp"

#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>

namespace citysplat::adjust {

namespace {

/// A patch where the corrections put it.
struct MovedPatch {
    Vec3d mean_m, sensor_m;
};

/// Which cell a patch is in, and which patch it is: what is sorted.
struct PlaceOfPatch {
    std::int64_t cell_x, cell_y, cell_z;
    std::uint32_t slot, index;

    auto key() const { return std::tuple(cell_x, cell_y, cell_z, slot, index); }
    bool same_cell(const PlaceOfPatch& o) const {
        return cell_x == o.cell_x && cell_y == o.cell_y && cell_z == o.cell_z;
    }
};

MovedPatch moved(const Patch& patch, const Corrections& corrections) {
    const auto [drive, interval] = corrections.slot(patch.slot);
    const KnotCorrection c = corrections.drive(drive).at({interval, patch.share});
    const Vec3d given = patch.sensor_m(), sensor = given + c.shift_m;
    const Vec3d mean = sensor + rotate(rotation_from(c.turn_rad), patch.mean_m - given);
    return {mean, sensor};
}

}  // namespace

Corrections::Corrections(std::vector<Correction> drives) : drives_(std::move(drives)) {
    for (std::uint32_t d = 0; d < drives_.size(); ++d) {
        first_knots_.push_back(knots_);
        first_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
        knots_ += drives_[d].knots().size();
        for (std::uint32_t i = 0; i < drives_[d].intervals(); ++i) slots_.push_back({d, i});
    }
}

void for_each_cell(std::span<const Patch> patches, const Corrections& corrections, double cell_m,
                   const std::function<void(std::span<const SlotOfCell>)>& visit) {
    std::vector<MovedPatch> by_index(patches.size());
    std::vector<PlaceOfPatch> all(patches.size());
    const auto cell = [&](double v) { return static_cast<std::int64_t>(std::floor(v / cell_m)); };
    for (std::uint32_t i = 0; i < patches.size(); ++i) {
        by_index[i] = moved(patches[i], corrections);
        const Vec3d& mean = by_index[i].mean_m;
        all[i] = {cell(mean.x), cell(mean.y), cell(mean.z), patches[i].slot, i};
    }
    std::sort(all.begin(), all.end(),
              [](const PlaceOfPatch& a, const PlaceOfPatch& b) { return a.key() < b.key(); });
    std::vector<SlotOfCell> slots;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const PlaceOfPatch& at = all[i];
        const Patch& patch = patches[at.index];
        const auto& [mean_m, sensor_m] = by_index[at.index];
        // The scatter is turned by less than a degree or two: not worth the arithmetic.
        Moments moments = patch.moments();
        moments.mean_m = mean_m;
        if (slots.empty() || slots.back().slot != at.slot) {
            slots.push_back({moments, sensor_m, 0, patch.share, at.slot, 0});
        } else {
            SlotOfCell& slot = slots.back();
            const double part = moments.points / (slot.moments.points + moments.points);
            slot.moments += moments;
            slot.sensor_m = slot.sensor_m + part * (sensor_m - slot.sensor_m);
            slot.share += part * (patch.share - slot.share);
        }
        if (i + 1 < all.size() && at.same_cell(all[i + 1])) continue;
        for (SlotOfCell& slot : slots) {
            const auto [drive, interval] = corrections.slot(slot.slot);
            const auto times = corrections.drive(drive).knot_times_s();
            slot.drive = drive;
            slot.time_s = times[interval];
            if (times.size() > 1) slot.time_s += slot.share * (times[interval + 1] - times[interval]);
        }
        visit(slots);
        slots.clear();
    }
}

void passes_of(std::span<const SlotOfCell> slots, std::vector<PassOfCell>& out) {
    out.clear();
    double last = 0;
    for (const SlotOfCell& slot : slots) {
        const double pass = std::floor(slot.time_s / kPass_s);
        if (out.empty() || out.back().drive != slot.drive || pass != last) {
            out.push_back({slot.moments, slot.sensor_m, slot.time_s, slot.drive});
            last = pass;
            continue;
        }
        PassOfCell& joined = out.back();
        const double part = slot.moments.points / (joined.moments.points + slot.moments.points);
        joined.moments += slot.moments;
        joined.sensor_m = joined.sensor_m + part * (slot.sensor_m - joined.sensor_m);
        joined.time_s += part * (slot.time_s - joined.time_s);
    }
}

void for_each_batch(const PatchStore& patches, std::uint64_t memory_bytes,
                    const std::function<void(std::size_t first, std::size_t last)>& body) {
    for (std::size_t first = 0; first < patches.sectors();) {
        std::size_t last = first;
        for (std::uint64_t bytes = 0; last < patches.sectors(); ++last) {
            bytes += patches.size_of(last) * kBytesPerPatch;
            if (last > first && bytes > memory_bytes) break;
        }
        body(first, last);
        first = last;
    }
}

Thickness measure_thickness(const PatchStore& patches, const Corrections& corrections,
                            std::uint64_t memory_bytes, const CancelToken& cancel) {
    std::mutex adding;
    Thickness all;
    for_each_batch(patches, memory_bytes, [&](std::size_t first, std::size_t last) {
        parallel_tasks(last - first, [&](std::size_t i) {
            cancel.check();
            std::vector<Patch> of_sector;
            patches.load(first + i, of_sector);
            Thickness part;
            std::vector<PassOfCell> passes;
            for_each_cell(of_sector, corrections, kThicknessCell_m, [&](std::span<const SlotOfCell> slots) {
                passes_of(slots, passes);
                if (const auto gap = gap_of(passes)) part.add(*gap);
            });
            const std::lock_guard lock(adding);
            all.add(part);
        });
    });
    return all;
}

}  // namespace citysplat::adjust
