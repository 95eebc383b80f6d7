#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace citysplat::test {

/// A GLB file in the making: numbers go into its binary chunk, the rest is JSON.
struct GlbImage {
    nlohmann::json json{
        {"asset", {{"version", "2.0"}}},          {"buffers", nlohmann::json::array({{{"byteLength", 0}}})},
        {"bufferViews", nlohmann::json::array()}, {"accessors", nlohmann::json::array()},
        {"meshes", nlohmann::json::array()},      {"nodes", nlohmann::json::array()}};
    std::string binary;

    /// Number of the accessor.
    template <class T>
    std::size_t add(const std::vector<T>& values, const char* type, int component) {
        const std::size_t width = std::string(type) == "VEC3" ? 3 : 1;
        json["bufferViews"].push_back(
            {{"buffer", 0}, {"byteOffset", binary.size()}, {"byteLength", values.size() * sizeof(T)}});
        json["accessors"].push_back({{"bufferView", json["bufferViews"].size() - 1},
                                     {"componentType", component},
                                     {"count", values.size() / width},
                                     {"type", type}});
        binary.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        binary.resize((binary.size() + 3) / 4 * 4, '\0');
        return json["accessors"].size() - 1;
    }
    std::string bytes() {
        json["buffers"][0]["byteLength"] = binary.size();
        std::string text = json.dump();
        text.resize((text.size() + 3) / 4 * 4, ' ');
        std::string file = "glTF";
        const auto word = [&](std::uint32_t v) { file.append(reinterpret_cast<const char*>(&v), 4); };
        word(2), word(static_cast<std::uint32_t>(12 + 8 + text.size() + 8 + binary.size()));
        word(static_cast<std::uint32_t>(text.size())), word(0x4e4f534a), file += text;
        word(static_cast<std::uint32_t>(binary.size())), word(0x004e4942), file += binary;
        return file;
    }
};

/// One triangle in one node.
inline GlbImage glb_triangle() {
    GlbImage glb;
    const std::size_t places = glb.add<float>({0, 0, 0, 1, 0, 0, 0, 1, 0}, "VEC3", 5126);
    const std::size_t corners = glb.add<std::uint16_t>({0, 1, 2}, "SCALAR", 5123);
    glb.json["materials"] = {
        {{"name", "paint"}, {"pbrMetallicRoughness", {{"baseColorFactor", {0.5, 0.5, 0.5, 1}}}}}};
    glb.json["meshes"].push_back(
        {{"primitives",
          nlohmann::json::array(
              {{{"attributes", {{"POSITION", places}}}, {"indices", corners}, {"material", 0}}})}});
    glb.json["nodes"].push_back({{"mesh", 0}});
    return glb;
}

}  // namespace citysplat::test
