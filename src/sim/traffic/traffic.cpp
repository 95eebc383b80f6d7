#include "sim/traffic/traffic.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace citysplat::sim {

namespace {

constexpr std::size_t kMostActors = std::size_t{1} << 24;

void check(const Shape& shape) {
    if (const auto* mesh = std::get_if<TriangleMesh>(&shape.form))
        mesh->check("shape \"" + shape.name + "\"");
    else if (std::get<SplatTile>(shape.form).empty())
        throw InputError("shape \"" + shape.name + "\" has no splats");
}

void check(const Actor& actor, std::size_t shapes) {
    const auto refuse = [&](const std::string& what) {
        throw InputError("actor \"" + actor.name + "\": " + what);
    };
    actor.track.check();
    if (actor.shape >= shapes)
        refuse("there is no shape " + std::to_string(actor.shape) + ", only " + std::to_string(shapes));
    if (actor.instance == 0) refuse("its instance is 0, which stands for the city");
}

}  // namespace

Traffic::Traffic(std::vector<Shape> shapes, std::vector<Actor> actors)
    : shapes_(std::move(shapes)), actors_(std::move(actors)) {
    if (actors_.size() > kMostActors)
        throw InputError("a scenario of " + std::to_string(actors_.size()) + " actors; the most is " +
                         std::to_string(kMostActors));
    for (const Shape& shape : shapes_) check(shape);
    for (std::uint32_t i = 0; i < actors_.size(); ++i) {
        check(actors_[i], shapes_.size());
        if (actors_[i].told) told_.push_back(i);
    }
}

void Traffic::tell(std::uint32_t number, Track track) {
    track.check();
    Actor& actor = actors_[number];
    actor.track = std::move(track);
    if (actor.told) return;
    actor.told = true;
    told_.insert(std::upper_bound(told_.begin(), told_.end(), number), number);
}

}  // namespace citysplat::sim
