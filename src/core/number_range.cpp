#include "core/number_range.hpp"

#include "core/bytes.hpp"

namespace citysplat {

std::string NumberRange::text() const {
    std::string out = "from " + format_number(least) + " to " + format_number(most);
    if (!unit.empty()) out += " " + std::string(unit);
    return out;
}

std::optional<double> parse_number(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return std::nullopt;
    }
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace citysplat
