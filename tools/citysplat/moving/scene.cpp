#include "citysplat/moving/scene.hpp"

#include "citysplat/context.hpp"
#include "core/error.hpp"
#include "objects/stored/stored_folders.hpp"
#include "tiling/store/city_reader.hpp"

namespace citysplat::cli {

std::shared_ptr<const TileSource> open_scene(const NamedCity& city, const sim::Scenario& scenario) {
    if (!city.name.empty()) {
        const auto generation = city.generation.number(city.name);
        return city.region.cut(std::make_shared<tiling::CityReader>(
            city.name, generation, city.product.kind(city.name, generation)));
    }
    if (city.region.given()) throw UsageError(city.region.text() + ": there is no city to take it from");
    if (scenario.things.empty())
        throw UsageError("there is nothing to look at: name a city, or a --scenario with things of its own");
    return std::make_shared<sim::NoCity>(scenario.classes.empty() ? ClassMap()
                                                                  : ClassMap::load(scenario.classes));
}

sim::PreparedTraffic traffic_of(const sim::Scenario& scenario, std::span<const sim::SensorWay> ways,
                                trace::ResidentCity& city, Context& context) {
    const ClassMap classes =
        scenario.classes.empty() ? city.source().classes() : ClassMap::load(scenario.classes);
    const objects::StoredFolders folders;
    sim::PreparedTraffic traffic = sim::prepare_traffic(scenario.things, sim::span_of(ways),
                                                        {classes, &folders}, city, context.cancel());
    for (const std::string& note : traffic.notes) context.say(note);
    return traffic;
}

}  // namespace citysplat::cli
