#include "tiling/care/catalog_copy.hpp"

#include <map>
#include <vector>

namespace citysplat::tiling {

void copy_generations(Catalog& from, std::span<const GenerationRow> generations,
                      const std::filesystem::path& path) {
    std::vector<std::vector<InputRow>> inputs;
    std::map<std::int64_t, std::int64_t> numbers;  // of sources, there and here
    std::vector<CitySource> sources;
    for (const GenerationRow& generation : generations) {
        inputs.push_back(from.inputs(generation.id));
        for (const InputRow& input : inputs.back()) {
            if (!numbers.emplace(input.source, 0).second) continue;
            CitySource& source = sources.emplace_back();
            source.row = from.source(input.source);
            source.segments = from.segments(input.source);
        }
    }
    Catalog::create(path);
    Catalog to = Catalog::open_to_write(path);
    const std::vector<std::int64_t> ids = to.add_sources(sources);
    for (std::size_t i = 0; i < ids.size(); ++i) numbers[sources[i].row.id] = ids[i];
    for (std::size_t i = 0; i < generations.size(); ++i) {
        for (InputRow& input : inputs[i]) input.source = numbers.at(input.source);
        std::vector<ProductRow> tiles = from.tiles(generations[i].id);
        if (!tiles.empty()) to.add_products(tiles);
        to.publish(generations[i], inputs[i], tiles);
    }
}

}  // namespace citysplat::tiling
