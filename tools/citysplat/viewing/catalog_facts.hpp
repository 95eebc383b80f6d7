#pragma once

#include "tiling/store/catalog.hpp"
#include "view/server/shown_set.hpp"

#include <memory>
#include <string>
#include <vector>

/// What the viewer tells of a city beside its splats, from the catalog and the archives of points.
namespace citysplat::cli {

view::CityFacts facts_of(const std::string& city, const tiling::GenerationRow& generation);

/// Requires that the generation stays pinned.
std::unique_ptr<const view::Provenance> provenance_of(const std::string& city, std::int64_t generation);

/// All that the catalog retains; reads it anew each time, because builds publish and gc removes meanwhile.
class Generations final : public view::GenerationSource {
  public:
    explicit Generations(std::string city) : city_(std::move(city)) {}

    std::vector<view::GenerationFacts> list() const override;
    Opened open(std::int64_t number) const override;

  private:
    std::string city_;
};

}  // namespace citysplat::cli
