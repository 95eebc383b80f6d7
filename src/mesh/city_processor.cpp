#include "mesh/city_processor.hpp"

#include <stdexcept>

namespace citysplat::mesh {

CityProcessor::CityProcessor(std::vector<std::unique_ptr<tiling::TileProcessor>> parts)
    : parts_(std::move(parts)) {
    if (parts_.empty()) throw std::logic_error("a city is made of nothing");
}

std::vector<ProductKind> CityProcessor::kinds() const {
    std::vector<ProductKind> kinds;
    for (const auto& part : parts_) kinds.push_back(part->kinds().front());
    return kinds;
}

const tiling::TileProcessor& CityProcessor::of(ProductKind kind) const {
    for (const auto& part : parts_)
        if (part->kinds().front() == kind) return *part;
    throw std::logic_error("nobody makes this kind of product");
}

tiling::Calibration CityProcessor::calibrate(const tiling::RegionReader& reader, const CancelToken& cancel,
                                             Progress& progress) const {
    return parts_.front()->calibrate(reader, cancel, progress);
}

void CityProcessor::set_calibration(const tiling::Calibration& calibration) {
    for (const auto& part : parts_) part->set_calibration(calibration);
}

Hash128 CityProcessor::parameters_key() const {
    if (parts_.size() == 1) return parts_.front()->parameters_key();
    Hasher hasher;
    hasher.text("products");
    for (const auto& part : parts_) hasher.number(part->kinds().front()).hash(part->parameters_key());
    return hasher.finish();
}

tiling::TileOutput CityProcessor::process(tiling::Region region, const CancelToken& cancel) const {
    return parts_.front()->process(std::move(region), cancel);
}

}  // namespace citysplat::mesh
