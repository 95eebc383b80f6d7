#include "sim/learn/learning_set.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace citysplat::sim::learn {

namespace {

/// Of one surface seen by the real sensor and in the model.
constexpr float kSameSurface_m = 0.1f;

/// The noise of training is that of the first seed.
constexpr std::uint64_t kSeed = 1;

std::uint64_t voxel_of(Vec3d position) {
    const auto cell = [](double v) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(v * 2)) & 0x1fffff);
    };
    return cell(position.x) << 42 | cell(position.y) << 21 | cell(position.z);
}

float normal_of(double uniform) { return static_cast<float>(normal_quantile(uniform + 0x1.0p-54)); }

/// What was not recorded stays unknown until the means are known.
Normalisation unknown_recordings() {
    Normalisation norm{};
    norm.mean[kRecordedRange] = norm.mean[kRecordedIncidence] = std::numeric_limits<float>::quiet_NaN();
    return norm;
}

}  // namespace

void LearningSet::add(const LearningScan& scan) {
    if (scan.simulated.size() != grid_.rays() || scan.observed.size() != grid_.rays())
        throw InputError("a scan with " + std::to_string(scan.observed.size()) +
                         " rays cannot teach a sensor that has " + std::to_string(grid_.rays()));
    const Normalisation norm = unknown_recordings();
    const NoiseKeys keys{scan_key(kSeed, 0, scans()), place_key(kSeed)};
    const std::size_t first = rays_.size();
    std::vector<std::uint32_t> in_last_column(grid_.beams(), kNoRay), in_this_column(grid_.beams(), kNoRay);
    voxels_.clear();
    walk_.begin(grid_.view(), scan.simulated);
    for (std::uint32_t column = 0; column < grid_.columns(); ++column) {
        walk_.next();
        for (std::uint32_t row = 0; row < grid_.beams(); ++row) {
            const std::uint32_t beam = grid_.beam_of_row(row), ray = column * grid_.beams() + beam;
            const Return& r = scan.simulated[ray];
            const Observation& real = scan.observed[ray];
            in_this_column[beam] = kNoRay;
            if (r.status != RayStatus::hit || real.answer == Answer::unknown) continue;
            in_this_column[beam] = static_cast<std::uint32_t>(rays_.size());
            float inputs[kInputs], f[kFeatures];
            put_inputs(r, 0, walk_.at(row), norm,
                       [&inputs](unsigned input, float value) { inputs[input] = value; });
            make_features(inputs, f);
            rays_.features.push_back(std::to_array(f));
            rays_.beam.push_back(static_cast<std::uint16_t>(beam));
            rays_.mask_cell.push_back(static_cast<std::uint16_t>(grid_.mask_cell(beam, column)));
            rays_.lost.push_back(real.answer == Answer::empty);
            const bool matched =
                real.answer == Answer::returned && std::fabs(real.range_m - r.range_m) <= kSameSurface_m;
            rays_.real_intensity.push_back(matched ? real.intensity : -1.0f);
            const NoiseDraws draws = draws_of(keys, r, ray);
            rays_.noise.push_back({normal_of(draws.scan), normal_of(draws.place), normal_of(draws.ray)});
            rays_.left.push_back(in_last_column[beam]);
            rays_.again.push_back(kNoRay);
            voxels_.push_back(voxel_of(r.position));
        }
        std::swap(in_last_column, in_this_column);
    }
    link_to_last_scan(first);
    rays_.scan_ends.push_back(rays_.size());
    digest_.number(scan.time_s);
    digest_.bytes(std::as_bytes(std::span(rays_.features).subspan(first)));
    digest_.bytes(std::as_bytes(std::span(rays_.lost).subspan(first)));
    digest_.bytes(std::as_bytes(std::span(rays_.real_intensity).subspan(first)));
}

/// For each ray of the last scan the first of this one in the same voxel.
void LearningSet::link_to_last_scan(std::size_t first) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> here;
    for (std::size_t i = 0; i < voxels_.size(); ++i)
        here.emplace_back(voxels_[i], static_cast<std::uint32_t>(first + i));
    std::sort(here.begin(), here.end());
    const std::size_t last_first = first - last_voxels_.size();
    for (std::size_t i = 0; i < last_voxels_.size(); ++i) {
        const auto found = std::lower_bound(here.begin(), here.end(), std::pair{last_voxels_[i], 0u});
        if (found != here.end() && found->first == last_voxels_[i])
            rays_.again[last_first + i] = found->second;
    }
    std::swap(last_voxels_, voxels_);
}

}  // namespace citysplat::sim::learn
