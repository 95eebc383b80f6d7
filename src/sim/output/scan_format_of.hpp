#pragma once

#include "sim/output/scan_fields.hpp"
#include "sim/output/scan_format.hpp"
#include "sim/scan/return_lanes.hpp"
#include "sim/scan/scan_hd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

/// What all formats of returns have in common. For the files that make formats.
namespace citysplat::sim {

/// Brings points of the world into the frame of a file.
class Frame {
  public:
    Frame(const CloudLayout& layout, const Scan& scan)
        : frame_(layout.frame == CloudFrame::firing && scan.keys.empty() ? CloudFrame::sensor : layout.frame),
          scan_(scan),
          translation_(scan.world_from_sensor.translation),
          sensor_from_world_(conjugate(scan.world_from_sensor.rotation)) {}

    Vec3d place_of(const Return& r) const {
        if (frame_ == CloudFrame::world) return r.position;
        if (frame_ == CloudFrame::sensor) return rotate(sensor_from_world_, r.position - translation_);
        const PoseKey at = pose_at(scan_.keys.data(), scan_.keys_per_second, r.time_s);
        const Vec3d d = r.position - at.t;
        return {at.r[0] * d.x + at.r[3] * d.y + at.r[6] * d.z, at.r[1] * d.x + at.r[4] * d.y + at.r[7] * d.z,
                at.r[2] * d.x + at.r[5] * d.y + at.r[8] * d.z};
    }

  private:
    CloudFrame frame_;
    const Scan& scan_;
    Vec3d translation_;
    Quaternion sensor_from_world_;
};

/// What the records of a format need to know about the points.
enum class Needs {
    attributes,  ///< not where they are
    positions,   ///< that, but nothing else that must be computed
    all          ///< angles too, and their number and bounds for a header
};

/// A format from what its records are: their largest size, and put(), which appends one and returns the
/// position as a reader will see it.
template <class Record>
class FormatOf final : public ScanFormat {
  public:
    std::string_view extension() const override { return Record::kExtension; }
    std::string header(const CloudLayout& layout, const io::CloudSummary& summary) const override {
        return Record::header(layout, summary);
    }
    std::size_t most_record_bytes() const override { return Record::kMostBytes; }
    void append(const ScanPiece& piece, const CloudLayout& layout, std::byte*& at,
                io::CloudSummary& summary) const override {
        const Scan& scan = piece.scan;
        const Frame frame(layout, scan);
        std::array<std::uint32_t, kBlock> rays;
        std::array<float, kBlock> incidence_deg{};
        std::byte* out = at;  // a pointer that nothing else can change stays in a register
        for (std::size_t next = piece.begin; next < piece.end;) {
            const std::size_t count = choose(piece, layout, next, rays);
            if constexpr (Record::kNeeds == Needs::all) {
                for (std::size_t i = 0; i < count; ++i) incidence_deg[i] = scan.returns[rays[i]].cosine;
                lanes_.incidences({incidence_deg.data(), count});
            } else {
                summary.points += count;
            }
            for (std::size_t i = 0; i < count; ++i) {
                const Return& r = scan.returns[rays[i]];
                ReturnPoint point{scan, rays[i], r, {0, 0, 0}, 0};
                if (layout.several) count_returns(layout.keep_all, point);
                if constexpr (Record::kNeeds != Needs::attributes) point.position = frame.place_of(r);
                if (r.status != RayStatus::none) point.incidence_deg = incidence_deg[i];
                const Vec3d written = Record::put(out, point, layout);
                if constexpr (Record::kNeeds == Needs::all) summary.add(written);
            }
        }
        at = out;
    }

  private:
    static constexpr std::size_t kBlock = 128;

    /// The next rays that are written, from `next` on.
    static std::size_t choose(const ScanPiece& piece, const CloudLayout& layout, std::size_t& next,
                              std::array<std::uint32_t, kBlock>& rays) {
        const bool by_pulse = layout.by_pulse && piece.scan.returns_per_pulse == 2;
        std::size_t count = 0;
        for (; next < piece.end && count < kBlock; ++next) {
            const std::size_t at = by_pulse ? next / 2 + next % 2 * piece.scan.pulses() : next;
            rays[count] = static_cast<std::uint32_t>(at);
            count += is_written(piece.scan, at, layout.keep_all);
        }
        return count;
    }
    /// A pulse without any return is written once.
    static bool is_written(const Scan& scan, std::size_t at, bool all) {
        const RayStatus status = scan.returns[at].status;
        return status == RayStatus::hit || (all && (at < scan.pulses() || status != RayStatus::none));
    }
    /// `point.ray` is the place of a return among all of the scan; becomes that of its pulse.
    static void count_returns(bool all, ReturnPoint& point) {
        const Scan& scan = point.scan;
        const std::size_t pulses = scan.pulses(), at = point.ray,
                          other = at < pulses ? at + pulses : at - pulses;
        point.ray = static_cast<std::uint32_t>(at % pulses);
        if (!is_written(scan, other, all)) return;
        point.number_of_returns = 2;
        point.return_number = scan.returns[other].range_m < point.r.range_m ? 2 : 1;
    }

    const ReturnLanes lanes_ = return_lanes();
};

}  // namespace citysplat::sim
