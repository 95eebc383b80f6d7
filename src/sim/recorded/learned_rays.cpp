#include "sim/recorded/learned_rays.hpp"

#include "sim/sensor/sensor_model_hd.hpp"

namespace citysplat::sim {

LearnedRays::LearnedRays(const Sensor& sensor, const BeamTable& found)
    : images_(sensor, found), pass_(learn::SensorModel::load(sensor.model), sensor, sensor.model.string()) {}

void LearnedRays::apply(const RecordedScan& scan, std::uint64_t index, std::span<Return> simulated) {
    constexpr std::uint64_t kSeed = 1;
    std::vector<Return> image = images_.lesson(scan, simulated).simulated;
    const std::vector<std::uint32_t> places = images_.places_of(scan);
    pass_.apply(image, {scan_key(kSeed, 0, index), learn::place_key(kSeed)}, scratch_);
    for (std::size_t i = 0; i < simulated.size(); ++i) {
        Return& r = simulated[i];
        if (!images_.reaches(r.range_m)) r.status = RayStatus::none;
        if (places[i] == LessonMaker::kNowhere || r.status != RayStatus::hit) continue;
        r.status = image[places[i]].status;
        r.intensity = image[places[i]].intensity;
    }
}

}  // namespace citysplat::sim
