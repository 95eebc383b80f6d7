#include "api/parts.hpp"
#include "trace/resident_city.hpp"

namespace citysplat::api {
inline namespace v1 {

const char* version() { return CITYSPLAT_VERSION; }

City::City(const std::filesystem::path& directory, std::optional<std::int64_t> generation)
    : parts_(guarded([&] {
          auto parts = std::make_shared<Parts>(directory, generation);
          for (const TileEntry& e : parts->reader.tiles())
              parts->tiles.push_back({e.key.text(), e.splats, to_api(e.min), to_api(e.max)});
          return parts;
      })) {}
City::~City() = default;
City::City(const City&) = default;
City& City::operator=(const City&) = default;

std::int64_t City::generation() const { return parts_->reader.generation().id; }
std::uint64_t City::splats() const { return parts_->reader.generation().splats; }
std::string City::crs() const { return parts_->reader.crs(); }
std::string City::digest() const { return parts_->reader.generation().digest.hex(); }
std::span<const TileInfo> City::tiles() const { return parts_->tiles; }

std::vector<Splat> City::tile(std::size_t index) const {
    if (index >= parts_->tiles.size())
        throw Error(static_cast<int>(ErrorKind::usage), "the city has " +
                                                            std::to_string(parts_->tiles.size()) +
                                                            " tiles, not a tile " + std::to_string(index));
    return guarded([&] {
        const SplatTile tile = parts_->reader.load(index);
        const Vec3d origin = tile.frame().origin_m();
        std::vector<Splat> splats;
        splats.reserve(tile.size());
        for (std::size_t i = 0; i < tile.size(); ++i) {
            const Disc disc = tile.disc(i);
            splats.push_back({to_api(origin + vec_cast<double>(disc.centre)), to_api(disc.normal),
                              disc.radius, tile.label()[i], tile.intensity()[i]});
        }
        return splats;
    });
}

std::string City::class_name(std::uint16_t label) const {
    const ClassMap& classes = parts_->reader.classes();
    return classes.classes().empty() ? std::string() : classes.at(label).name;
}

struct Caster::Parts {
    Parts(const City& which, const trace::CacheOptions& options)
        : city(which), tracer(trace::make_group_tracer()), resident(city.parts().reader, *tracer, options) {}

    City city;
    std::unique_ptr<trace::Tracer> tracer;
    trace::ResidentCity resident;
};

Caster::Caster(const City& city, std::uint64_t memory_bytes)
    : parts_(guarded([&] { return std::make_unique<Parts>(city, trace::CacheOptions{memory_bytes}); })) {}
Caster::~Caster() = default;
Caster::Caster(Caster&&) noexcept = default;
Caster& Caster::operator=(Caster&&) noexcept = default;

Hit to_api(const trace::Hit& hit, const trace::Ray& ray) {
    if (!hit.exists()) return {};
    const citysplat::Vec3f normal = unpack_normal(hit.normal);
    return {true,
            hit.range_m,
            to_api(ray.origin + vec_cast<double>(ray.direction) * hit.range_m),
            to_api(dot(normal, ray.direction) > 0 ? -normal : normal),
            hit.label,
            hit.intensity,
            hit.splat_id,
            hit.instance};
}

std::vector<Hit> Caster::cast(std::span<const Ray> rays) {
    return guarded([&] {
        std::vector<trace::Ray> inner;
        inner.reserve(rays.size());
        for (const Ray& ray : rays) inner.push_back(from_api(ray));
        std::vector<trace::Hit> found(rays.size());
        parts_->resident.closest(inner, found, CancelToken());
        std::vector<Hit> hits(rays.size());
        for (std::size_t i = 0; i < rays.size(); ++i) hits[i] = to_api(found[i], inner[i]);
        return hits;
    });
}

}  // namespace v1
}  // namespace citysplat::api
