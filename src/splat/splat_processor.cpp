#include "splat/splat_processor.hpp"

#include "adjust/thickness_words.hpp"
#include "core/error.hpp"
#include "splat/calibration.hpp"
#include "splat/generation/surfels.hpp"
#include "splat/generation/tile_generation.hpp"
#include "splat/search/curve.hpp"

#include <algorithm>

namespace citysplat::splat {
namespace {

/// Raised whenever the same points and parameters give other splats than before.
constexpr std::uint32_t kAlgorithmVersion = 6, kSurfelVersion = 1;

/// Splats along the Hilbert curve through world positions in millimetres or so, whatever the frame; in the
/// same millimetre by what they are.
void sort_along_curve(std::vector<Splat>& splats, const TileFrame& frame) {
    constexpr int kBits = 21, kShift = 3;
    const LatticePoint o = frame.origin();
    const auto cell = [](std::int64_t steps) {
        return static_cast<std::uint32_t>(steps >> kShift) & ((1u << kBits) - 1);
    };
    std::vector<KeyedIndex> order(splats.size());
    for (std::size_t i = 0; i < splats.size(); ++i) {
        const Splat& s = splats[i];
        order[i] = {hilbert_key(cell(o.x + s.x), cell(o.y + s.y), cell(o.z + s.z), kBits),
                    static_cast<std::uint32_t>(i)};
    }
    const auto before = [&](const KeyedIndex& e, const KeyedIndex& f) {
        const Splat &a = splats[e.index], &b = splats[f.index];
        return std::tie(a.x, a.y, a.z, a.normal, a.radius, a.label, a.intensity) <
               std::tie(b.x, b.y, b.z, b.normal, b.radius, b.label, b.intensity);
    };
    sort_by_key(order, 3 * kBits, before);
    std::vector<Splat> sorted;
    sorted.reserve(splats.size());
    for (const KeyedIndex& e : order) sorted.push_back(splats[e.index]);
    splats = std::move(sorted);
}

/// Moves splats to a frame whose height is the whole metre in the middle of theirs, so that 24 bits hold it.
TileFrame choose_frame(std::vector<Splat>& splats, TileFrame frame) {
    if (splats.empty()) return frame;
    const auto [low, high] = std::minmax_element(splats.begin(), splats.end(),
                                                 [](const Splat& a, const Splat& b) { return a.z < b.z; });
    const std::int64_t middle_m =
        floor_div((std::int64_t{low->z} + std::int64_t{high->z}) / 2, kLatticePerMetre);
    if (std::int64_t{high->z} - std::int64_t{low->z} >
        2 * std::int64_t{kMaxSplatSteps} - 2 * kLatticePerMetre)
        throw InputError(
            "splats of one tile lie more than 2 km apart in height; remove outliers of the input");
    const auto down = static_cast<std::int32_t>(middle_m * kLatticePerMetre);
    for (Splat& s : splats) s.z -= down;
    frame.z_m += middle_m;
    return frame;
}

}  // namespace

SplatProcessor::SplatProcessor(const SplatParams& params, ClassMap classes)
    : params_(params), classes_(std::move(classes)) {
    params_.validate();
}

tiling::Calibration SplatProcessor::calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                              Progress& progress) const {
    const MeasuredCity measured = measure_city(params_, classes_, reader, cancel, progress);
    *findings_ = R"({"thickness":)" + adjust::thickness_words(measured.thickness) + "}";
    return measured.means;
}

void SplatProcessor::set_calibration(const tiling::Calibration& calibration) { calibration_ = calibration; }

Hash128 SplatProcessor::parameters_key() const {
    Hasher hasher;
    if (params_.method == Method::surfels) {  // they know no means
        hasher.text("surfels").number(kSurfelVersion);
        params_.add_to(hasher);
        classes_.add_to(hasher);
        return hasher.finish();
    }
    hasher.text("adasplats").number(kAlgorithmVersion);
    params_.add_to(hasher);
    classes_.add_to(hasher);
    hasher.number(calibration_.mean_radius_m)
        .number(calibration_.mean_error_m)
        .number(calibration_.mean_density)
        .number(calibration_.angular_step_rad);
    return hasher.finish();
}

std::int64_t SplatProcessor::initial_halo_steps() const {
    if (params_.method == Method::surfels) return surfel_halo(params_);
    return initial_halo(GenerationSettings(params_, calibration_));
}

std::size_t SplatProcessor::estimated_bytes(std::uint64_t points) const {
    // Bytes a point: columns 29, index 2, surface 27, priorities and slices 14; in the largest slice about
    // one point in six is grown, at 190 a candidate with its members (32), and one in three is a splat (20).
    // The region (28) and sorting along the curve (28) are over before the surface begins. Together 124; the
    // rest is for what the allocator keeps.
    constexpr std::size_t kBytesPerPoint = 146, kBuffers = 16u << 20;
    return static_cast<std::size_t>(points) * kBytesPerPoint + kBuffers;
}

tiling::TileOutput SplatProcessor::process(tiling::Region region, const CancelToken& cancel) const {
    const GenerationSettings settings(params_, calibration_, times_.get());
    TileSplats made = params_.method == Method::surfels
                          ? make_surfels(region, classes_, params_, cancel)
                          : make_tile_splats(region, classes_, settings, calibration_.mean_density, cancel);
    tiling::TileOutput output;
    output.wanted_halo_steps = made.wanted_halo_steps;
    if (!output.certified()) return output;
    const StageTimes::Timer timer(times_.get(), Stage::output);
    sort_along_curve(made.splats, region.frame);
    const TileFrame frame = choose_frame(made.splats, region.frame);
    output.splats = SplatTile(frame, made.splats);
    return output;
}

}  // namespace citysplat::splat
