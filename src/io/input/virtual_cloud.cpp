#include "io/input/virtual_cloud.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace citysplat::io {

using nlohmann::json;

namespace {

/// The asset that is the cloud: "data", or the one with that role, or the only one.
std::string cloud_of(const json& assets) {
    const auto href = [](const json& asset) {
        return asset.is_object() && asset.contains("href") && asset["href"].is_string()
                   ? asset["href"].get<std::string>()
                   : std::string();
    };
    if (!assets.is_object()) return {};
    if (assets.contains("data")) return href(assets["data"]);
    for (const auto& [name, asset] : assets.items())
        if (asset.is_object() && asset.contains("roles") && asset["roles"].is_array() &&
            std::find(asset["roles"].begin(), asset["roles"].end(), "data") != asset["roles"].end())
            return href(asset);
    return assets.size() == 1 ? href(assets.begin().value()) : std::string();
}

/// The bytes that %20 and the like stand for.
std::string unescaped(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t at) -> int {
            if (at >= text.size()) return -1;
            const char c = text[at];
            return c >= '0' && c <= '9'   ? c - '0'
                   : c >= 'a' && c <= 'f' ? c - 'a' + 10
                   : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                          : -1;
        };
        if (text[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
            out += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace

std::vector<std::filesystem::path> virtual_cloud_files(const std::filesystem::path& path) {
    const json root = json::parse(read_text_file(path), nullptr, false);
    if (!root.is_object() || !root.contains("features") || !root["features"].is_array())
        throw InputError(path.string() + ": not a virtual point cloud: no JSON with an array \"features\"");
    std::vector<std::filesystem::path> files;
    for (const json& item : root["features"]) {
        const std::string name = "item " + std::to_string(files.size() + 1);
        std::string href = item.is_object() ? cloud_of(item.value("assets", json())) : std::string();
        if (href.empty()) throw InputError(path.string() + ": " + name + " names no file among its assets");
        if (href.starts_with("file://"))
            href = unescaped(href.substr(7));
        else if (href.find("://") != std::string::npos)
            throw InputError(path.string() + ": " + name + ", " + href +
                             ", is not on this machine; fetch it and name the copy");
        const std::filesystem::path file(href);
        files.push_back(file.is_absolute() ? file : path.parent_path() / file);
    }
    if (files.empty()) throw InputError(path.string() + ": this virtual point cloud has no items");
    return files;
}

}  // namespace citysplat::io
