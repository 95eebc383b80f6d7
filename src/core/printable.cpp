#include "core/printable.hpp"

#include <cstddef>
#include <cstdio>

namespace citysplat {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the UTF-8 character at the beginning of `text`; 0 when there is none. The first continuation
/// byte is narrower after some lead bytes: overlong forms, surrogates and what is beyond U+10FFFF.
std::size_t character_bytes(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    if (lead < 0x80) return 1;
    const std::size_t bytes = lead >= 0xc2 && lead <= 0xdf   ? 2
                              : lead >= 0xe0 && lead <= 0xef ? 3
                              : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                             : 0;
    if (bytes == 0 || text.size() < bytes) return 0;
    for (std::size_t i = 1; i < bytes; ++i)
        if (!is_continuation(text[i])) return 0;
    const auto second = static_cast<unsigned char>(text[1]);
    const bool impossible = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                            (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
    return impossible ? 0 : bytes;
}

/// U+0000 to U+001F, U+007F to U+009F.
bool is_control(std::string_view character) {
    const auto lead = static_cast<unsigned char>(character[0]);
    return lead < 0x20 || lead == 0x7f || (lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

void escape(std::string_view bytes, std::string& out) {
    for (const char c : bytes) {
        char code[8];
        std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += code;
    }
}

std::string escaped(std::string_view text, bool controls) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
        const bool layout = character == "\n" || character == "\t";
        if (bytes == 0 || (controls && !layout && is_control(character)))
            escape(character, out);
        else
            out += character;
        text.remove_prefix(character.size());
    }
    return out;
}

}  // namespace

std::string as_utf8(std::string_view text) { return escaped(text, false); }

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

std::string printable(std::string_view text) { return escaped(text, true); }

}  // namespace citysplat
