#include "mesh_check.hpp"

using namespace citysplat;

/// The model, "-----", and the one library of materials there is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t end = text.find("-----");
    const auto open = [&](const std::string& name) -> std::optional<std::string> {
        if (end == std::string_view::npos || name.size() % 2) return std::nullopt;
        return std::string(text.substr(end + 5));
    };
    try {
        fuzz::check(io::parse_obj(text.substr(0, end), "a.obj", open));
    } catch (const Error&) {
    }
    return 0;
}
