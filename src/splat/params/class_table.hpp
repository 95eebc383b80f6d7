#pragma once

#include "model/class_map.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::splat {

/// What the class map says, by label, without a search per point.
class ClassTable {
  public:
    explicit ClassTable(const ClassMap& classes) : unlisted_(entry(classes.unlisted())) {
        if (!classes.classes().empty()) {
            table_.resize(std::size_t{classes.classes().rbegin()->first} + 1, unlisted_);
            for (const auto& [label, info] : classes.classes()) table_[label] = entry(info);
        }
    }
    bool dynamic(std::uint16_t label) const { return at(label).dynamic; }
    SplatGroup group(std::uint16_t label) const { return at(label).group; }

  private:
    struct Entry {
        SplatGroup group;
        bool dynamic;
    };
    static Entry entry(const ClassInfo& info) { return {info.group, info.dynamic}; }
    const Entry& at(std::uint16_t label) const { return label < table_.size() ? table_[label] : unlisted_; }

    Entry unlisted_;
    std::vector<Entry> table_;
};

}  // namespace citysplat::splat
