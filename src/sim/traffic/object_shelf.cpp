#include "sim/traffic/object_shelf.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::sim {

namespace {

bool is_known(const ObjectSize& s) { return s.length_m > 0 && s.width_m > 0 && s.height_m > 0; }

TriangleMesh stretched(const TriangleMesh& mesh, const Vec3d& by) {
    TriangleMesh result = mesh;
    for (Vec3f& v : result.vertices) {
        const Vec3d d = vec_cast<double>(v);
        v = vec_cast<float>(Vec3d{by.x * d.x, by.y * d.y, by.z * d.z});
    }
    return result;
}

/// Discs stay discs: as wide as the largest stretch asks for, so that no gap opens between them.
SplatTile stretched(const SplatTile& tile, const Vec3d& by) {
    const double widest = std::max({by.x, by.y, by.z});
    std::vector<Splat> splats;
    splats.reserve(tile.size());
    for (std::size_t i = 0; i < tile.size(); ++i) {
        Splat s = tile.splat(i);
        const auto steps = [](double v) {
            return static_cast<std::int32_t>(
                std::clamp(std::floor(v + 0.5), -double{kMaxSplatSteps}, double{kMaxSplatSteps}));
        };
        s.x = steps(by.x * s.x), s.y = steps(by.y * s.y), s.z = steps(by.z * s.z);
        s.radius = static_cast<std::uint16_t>(std::min(std::ceil(widest * s.radius), 65535.0));
        const Vec3d n = vec_cast<double>(unpack_normal(s.normal));
        s.normal = pack_normal(normalized(Vec3d{n.x / by.x, n.y / by.y, n.z / by.z}));
        splats.push_back(s);
    }
    return SplatTile(tile.frame(), splats);
}

}  // namespace

bool differs(const ObjectSize& a, const ObjectSize& b) {
    constexpr double kShare = 0.1;
    const auto apart = [](double x, double y) {
        return x > 0 && y > 0 && std::fabs(x - y) > kShare * std::max(x, y);
    };
    return apart(a.length_m, b.length_m) || apart(a.width_m, b.width_m) || apart(a.height_m, b.height_m);
}

std::string text_of(const ObjectSize& s) {
    const auto rounded = [](double m) { return format_number(std::round(100 * m) / 100); };
    return rounded(s.length_m) + " × " + rounded(s.width_m) + " × " + rounded(s.height_m) + " m";
}

ObjectShelf::ObjectShelf(const ScenarioThings& things, const TrafficSources& sources) : sources_(sources) {
    for (const ObjectDescription& d : things.objects) descriptions_[d.name] = &d;
}

const UsedObject& ObjectShelf::add(const std::string& key, UsedObject object, Shape shape) {
    object.shape = static_cast<std::uint32_t>(shapes_.size());
    shapes_.push_back(std::move(shape));
    return used_.emplace(key, std::move(object)).first->second;
}

const UsedObject& ObjectShelf::make(const std::string& key, const ObjectDescription& d) {
    if (const auto found = used_.find(key); found != used_.end()) return found->second;
    ObjectShape object = make_object(d, sources_.classes);
    notes_.insert(notes_.end(), object.notes.begin(), object.notes.end());
    return add(key, {0, object.object_from_shape, object.size, d.name, d.class_name},
               std::move(object.shape));
}

const UsedObject& ObjectShelf::described(const std::string& name) {
    return make("object " + name, *descriptions_.at(name));
}

const UsedObject& ObjectShelf::box(const ObjectSize& size, double reflectance) {
    ObjectDescription d;
    d.name = "box " + format_number(size.length_m) + " × " + format_number(size.width_m) + " × " +
             format_number(size.height_m);
    d.form = ObjectDescription::Form::box;
    d.size = size;
    d.reflectance = reflectance;
    return make(d.name + " of " + format_number(reflectance), d);
}

const ObjectSource& ObjectShelf::bank(const BankName& name) {
    if (!sources_.stored)
        throw ConfigError("\"" + name.text() + "\": object banks cannot be opened in this place");
    ObjectSourcePtr& bank = banks_[name.folder];
    if (!bank) bank = sources_.stored->objects(name.folder);
    return *bank;
}

const UsedObject* ObjectShelf::of_bank(const BankName& name, const ObjectWish& wish) {
    const ObjectSource& from = bank(name);
    BankName chosen = name;
    if (chosen.object.empty()) {
        const auto best = from.choose(wish);
        if (!best) return nullptr;
        chosen.object = *best;
    }
    if (const auto found = used_.find(chosen.text()); found != used_.end()) return &found->second;
    StoredObject stored = from.load(chosen.object);
    Shape shape;
    shape.name = chosen.object;
    shape.form = std::move(stored.splats);
    return &add(chosen.text(), {0, {}, stored.size, chosen.object, stored.class_name}, std::move(shape));
}

const UsedObject& ObjectShelf::fitted(const UsedObject& object, const ObjectSize& size) {
    if (!is_known(object.size) || !is_known(size) || text_of(size) == text_of(object.size)) return object;
    const std::string key = "shape " + std::to_string(object.shape) + " as " + text_of(size);
    if (const auto found = used_.find(key); found != used_.end()) return found->second;
    const Vec3d by{size.length_m / object.size.length_m, size.width_m / object.size.width_m,
                   size.height_m / object.size.height_m};
    Shape shape;
    shape.name = object.name;
    std::visit([&](const auto& form) { shape.form = stretched(form, by); }, shapes_[object.shape].form);
    UsedObject fitted = object;
    Vec3d& at = fitted.object_from_shape.translation;
    at = {by.x * at.x, by.y * at.y, by.z * at.z};
    fitted.size = size;
    return add(key, std::move(fitted), std::move(shape));
}

std::string ObjectShelf::joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    return all;
}

}  // namespace citysplat::sim
