#include "core/error.hpp"
#include "io/input/input_list.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace citysplat;
using nlohmann::json;

namespace {

/// An item as PDAL wrench writes it.
json item(const std::string& href) {
    return {{"type", "Feature"},
            {"stac_version", "1.0.0"},
            {"id", "a"},
            {"assets", {{"data", {{"href", href}, {"roles", {"data"}}}}}}};
}
std::string collection(const json& items) {
    return json{{"type", "FeatureCollection"}, {"features", items}}.dump();
}

}  // namespace

TEST_CASE("a virtual point cloud is the clouds that it lists, with names relative to it") {
    const test::TempDir dir;
    std::filesystem::create_directory(dir / "sub");
    for (const char* name : {"a.xyz", "sub/b c.xyz"}) std::ofstream(dir / name) << "1 2 3\n4 5 6\n";
    const auto list = [&](const std::string& text) {
        std::ofstream(dir / "list.vpc") << text;
        const std::string argument = dir / "list.vpc";
        return expand_inputs(std::span(&argument, 1));
    };
    const auto found =
        list(collection({item("./a.xyz"), item("file://" + (dir / "sub/b%20c.xyz").string())}));
    REQUIRE(found.size() == 2);
    CHECK(std::filesystem::equivalent(found[0].path, dir / "a.xyz"));
    CHECK(std::filesystem::equivalent(found[1].path, dir / "sub/b c.xyz"));
    const std::string pattern = dir / "*.vpc";
    CHECK(expand_inputs(std::span(&pattern, 1)).size() == 2);
    CHECK_THROWS_AS(list(collection(json::array({item("https://example.org/a.laz")}))), InputError);
    CHECK_THROWS_AS(list(collection(json::array())), InputError);
    CHECK_THROWS_AS(list(collection(json::array({json{{"type", "Feature"}}}))), InputError);
    CHECK_THROWS_AS(list("not json"), InputError);
    CHECK_THROWS_AS(list(collection(json::array({item("gone.laz")}))), IoError);
}
