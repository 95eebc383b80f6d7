#pragma once

#include "citysplat/types.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citysplat::api {
inline namespace v1 {

struct TileInfo {
    std::string name;  ///< "0/652/6861": level and place in the grid
    std::uint64_t splats = 0;
    Vec3 min, max;  ///< around all discs
};

/// An oriented disc.
struct Splat {
    Vec3 centre;
    Vec3f normal;
    float radius_m = 0;
    std::uint16_t label = 0, intensity = 0;
};

/// One generation of a city, opened to read. It stays as it is for the life of the object, whatever is
/// published or removed meanwhile. Copies share it; safe to use from several threads.
class City {
  public:
    /// Opens the latest generation, or the given one.
    explicit City(const std::filesystem::path& directory, std::optional<std::int64_t> generation = {});
    ~City();
    City(const City&);
    City& operator=(const City&);

    std::int64_t generation() const;
    std::uint64_t splats() const;
    std::string crs() const;     ///< WKT or "EPSG:n"; empty: no input said
    std::string digest() const;  ///< of all splats
    std::span<const TileInfo> tiles() const;
    /// Reads a tile and checks it.
    std::vector<Splat> tile(std::size_t index) const;
    /// What the class map of the city calls a label; empty without a map.
    std::string class_name(std::uint16_t label) const;

    struct Parts;
    const Parts& parts() const { return *parts_; }  ///< for the library itself

  private:
    std::shared_ptr<const Parts> parts_;
};

struct Ray {
    Vec3 origin;
    Vec3f direction;  ///< unit length
    float min_range_m = 0, max_range_m = 200;
};

struct Hit {
    bool found = false;
    double range_m = 0;
    Vec3 position;
    Vec3f normal;  ///< towards the ray's origin
    std::uint16_t label = 0, intensity = 0;
    std::uint64_t splat = 0;     ///< its id; the same in every generation that has the splat
    std::uint16_t instance = 0;  ///< of what is not the city; 0: the city
};

/// Casts rays at a city of which only a part need fit the memory. Used by one thread at a time; works with
/// several.
class Caster {
  public:
    explicit Caster(const City& city, std::uint64_t memory_bytes = std::uint64_t{2} << 30);
    ~Caster();
    Caster(Caster&&) noexcept;
    Caster& operator=(Caster&&) noexcept;

    /// What each ray meets first. Neighbouring rays should be next to each other.
    std::vector<Hit> cast(std::span<const Ray> rays);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace v1
}  // namespace citysplat::api
