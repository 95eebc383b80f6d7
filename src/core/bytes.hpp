#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace citysplat {

/// "512M", "4G", "1.5GiB", "2000000" → bytes; K, M, G, T are powers of 1024. Throws UsageError naming `what`.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);

/// 1536 → "1.5 KiB".
std::string format_bytes(std::uint64_t bytes);

/// 1234567 → "1 234 567".
std::string format_count(std::uint64_t n);

/// "1234.5", as short as twelve digits allow.
std::string format_number(double v);

/// Seconds for people: "0.42 s", "12.3 s", "3:05", "1:02:10".
std::string format_duration(double seconds);

}  // namespace citysplat
