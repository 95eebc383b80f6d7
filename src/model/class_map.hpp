#pragma once

#include "core/hash.hpp"
#include "model/splat_hd.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// What one label of a data set means to us.
struct ClassInfo {
    std::string name;
    SplatGroup group = SplatGroup::surface;
    bool dynamic = false;          ///< removed before splats are made (AdaSplats §3.2)
    std::uint32_t rgb = 0x808080;  ///< for pictures
};

/// A versioned map from the labels of a data set to the four groups of AdaSplats. Labels that the map does
/// not list have the class `unlisted()`. Written as TOML (datasets/classes/*.toml), so that users can copy
/// one.
class ClassMap {
  public:
    ClassMap() = default;
    ClassMap(std::string name, int version, std::map<std::uint16_t, ClassInfo> classes,
             ClassInfo unlisted = {});

    /// A built-in map by name, or the TOML file at that path. Throws ConfigError.
    static ClassMap load(std::string_view name_or_path);
    static ClassMap parse(std::string_view toml, std::string_view origin);
    static std::vector<std::string> builtin_names();

    const std::string& name() const { return name_; }
    int version() const { return version_; }
    const std::map<std::uint16_t, ClassInfo>& classes() const { return classes_; }
    const ClassInfo& unlisted() const { return unlisted_; }
    const ClassInfo& at(std::uint16_t label) const;
    std::string to_toml() const;
    /// Everything that changes results: groups and dynamic flags, not names and colours.
    void add_to(Hasher& hasher) const;

  private:
    std::string name_ = "none";
    int version_ = 1;
    std::map<std::uint16_t, ClassInfo> classes_;
    ClassInfo unlisted_{"unlabelled", SplatGroup::surface, false, 0x808080};
};

}  // namespace citysplat
