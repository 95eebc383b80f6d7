#pragma once

#include "core/cancel.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace citysplat::io {

/// What an XML file says, element by element. Nothing of the file is kept.
class XmlHandler {
  public:
    virtual ~XmlHandler() = default;
    struct Element {
        std::string_view name;
        std::span<const std::pair<std::string_view, std::string_view>> attributes;
        std::span<const std::string> above;  ///< names of the elements around it, outermost first

        /// Empty when it is not there.
        std::string_view attribute(std::string_view key) const {
            for (const auto& [k, value] : attributes)
                if (k == key) return value;
            return {};
        }
        bool has(std::string_view key) const {
            for (const auto& [k, value] : attributes)
                if (k == key) return true;
            return false;
        }
    };
    virtual void begin(const Element&, std::uint64_t /*line*/) {}
    /// `text`: what stood in the element itself, blanks at the ends taken off. `above` as for begin().
    virtual void end(std::string_view /*name*/, std::string_view /*text*/,
                     std::span<const std::string> /*above*/, std::uint64_t /*line*/) {}
    /// True: nothing else in the file matters.
    virtual bool is_done() const { return false; }
};

/// Reads a file of any size in small pieces. Throws InputError naming file and line when it is not
/// well-formed, and what the handler throws.
void read_xml(const std::filesystem::path& path, XmlHandler& handler, const CancelToken& cancel);

}  // namespace citysplat::io
