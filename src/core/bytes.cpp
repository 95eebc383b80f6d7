#include "core/bytes.hpp"

#include "core/error.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace citysplat {

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    int exponent = 0;
    bool ok = ec == std::errc() && std::isfinite(value) && value >= 0;
    if (!unit.empty() && unit != "B") {
        const auto at = std::string_view("KMGT").find(
            static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
        unit.remove_prefix(1);
        ok = ok && at != std::string_view::npos && (unit.empty() || unit == "B" || unit == "iB");
        exponent = static_cast<int>(at) + 1;
    }
    const double bytes = ok ? std::ldexp(value, 10 * exponent) : 0;
    if (!ok || bytes > 1e18)
        throw UsageError(std::string(what) + ": \"" + std::string(text) +
                         "\" is not a size; write for example 512M or 4G");
    return static_cast<std::uint64_t>(bytes);
}

namespace {

template <class... Args>
std::string printed(const char* format, Args... args) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, args...);
    return text.data();
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    while (value >= 1024 && unit + 1 < names.size()) value /= 1024, ++unit;
    return printed(value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, names[unit]);
}

std::string format_count(std::uint64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, " ");
    }
    return digits;
}

std::string format_number(double v) { return printed("%.12g", v); }

std::string format_duration(double seconds) {
    if (seconds < 10) return printed("%.2f s", seconds);
    if (seconds < 100) return printed("%.1f s", seconds);
    const auto whole = static_cast<long long>(std::llround(seconds));
    if (whole < 3600) return printed("%lld:%02lld", whole / 60, whole % 60);
    return printed("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace citysplat
