#pragma once

#include "model/assembled/stored_things.hpp"
#include "sim/traffic/object_shape.hpp"
#include "sim/traffic/scenario_things.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace citysplat::sim {

/// What the names of a scenario refer to.
struct TrafficSources {
    const ClassMap& classes;
    const StoredThings* stored = nullptr;  ///< nullptr: banks and snapshots cannot be opened

    // NOLINTNEXTLINE(google-explicit-constructor): most scenarios need classes alone.
    TrafficSources(const ClassMap& names, const StoredThings* folders = nullptr)
        : classes(names), stored(folders) {}
};

/// An object that actors look like.
struct UsedObject {
    std::uint32_t shape;
    Pose object_from_shape;
    ObjectSize size;
    std::string name, class_name;
};

/// The objects of a scenario, each read when it is first asked for. What it gives stays valid.
class ObjectShelf {
  public:
    ObjectShelf(const ScenarioThings& things, const TrafficSources& sources);

    /// Whether an [[object]] has this name.
    bool describes(const std::string& name) const { return descriptions_.contains(name); }
    /// An [[object]]. Throws as make_object() does.
    const UsedObject& described(const std::string& name);
    /// An object of a bank: the one that is named, or chosen; nullptr when it has none of the class.
    const UsedObject* of_bank(const BankName& name, const ObjectWish& wish);
    /// For messages: "car, bus".
    std::string classes_of_bank(const BankName& name) { return joined(bank(name).classes()); }
    /// A box, shared by all of that size.
    const UsedObject& box(const ObjectSize& size, double reflectance);
    /// The object stretched to this size along its three axes. Sizes are equal when they are so in
    /// centimetres.
    const UsedObject& fitted(const UsedObject& object, const ObjectSize& size);

    std::vector<Shape> take_shapes() { return std::move(shapes_); }
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    const UsedObject& add(const std::string& key, UsedObject object, Shape shape);
    const UsedObject& make(const std::string& key, const ObjectDescription& description);
    const ObjectSource& bank(const BankName& name);
    static std::string joined(const std::vector<std::string>& words);

    TrafficSources sources_;
    std::map<std::string, const ObjectDescription*> descriptions_;
    std::map<std::filesystem::path, ObjectSourcePtr> banks_;
    std::map<std::string, UsedObject> used_;  ///< by a text that tells all that made it
    std::vector<Shape> shapes_;
    std::vector<std::string> notes_;
};

/// Whether a box differs by more than a tenth in some direction. Sizes that are not known do not differ.
bool differs(const ObjectSize& a, const ObjectSize& b);
/// "4.5 × 1.8 × 1.5 m"
std::string text_of(const ObjectSize& size);

}  // namespace citysplat::sim
