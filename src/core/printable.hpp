#pragma once

#include <string>
#include <string_view>

/// Names of files are bytes, and messages quote what files hold; what people and JSON readers get is text.
namespace citysplat {

/// The same text, with every byte that is not part of valid UTF-8 written as \xNN.
std::string as_utf8(std::string_view text);
bool is_utf8(std::string_view text);

/// For terminals and logs: control characters except line feed and tab are written as \xNN, too.
std::string printable(std::string_view text);

}  // namespace citysplat
