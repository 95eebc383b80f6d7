#include "house/source_tree.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace citysplat::test;

/// The rules of docs/architecture.md, "The house", held against the source.
namespace {

using Names = std::set<std::string>;

const std::vector<SourceFile>& sources() {
    static const auto files =
        read_sources(CITYSPLAT_SOURCE_DIR, {"src", "cuda", "datasets", "include", "tools"});
    return files;
}

/// Which modules a module may include, besides itself.
const std::map<std::string, Names> kMayUse{
    {"core", {}},
    {"model", {"core"}},
    {"io", {"core", "model"}},
    {"adjust", {"core", "model", "io"}},
    {"tiling", {"core", "model", "io"}},
    {"splat", {"core", "model", "io", "adjust", "tiling"}},
    {"mesh", {"core", "model", "tiling", "splat"}},
    {"trace", {"core", "model"}},
    {"objects", {"core", "model", "io", "adjust", "tiling", "splat", "trace"}},
    {"sim", {"core", "model", "io", "trace"}},
    {"compare", {"core", "model", "io", "trace", "sim"}},
    {"diff", {"core", "model", "io", "tiling", "compare"}},
    {"gis", {"core", "model", "io", "tiling", "diff"}},
    {"view", {"core", "model", "io", "splat", "trace"}},
    {"cuda", {"core", "model", "trace", "sim"}},
    {"datasets", {"core", "model", "io"}},
    {"api", {"citysplat", "core", "model", "io", "tiling", "splat", "mesh", "trace", "objects", "sim"}},
    {"include", {"citysplat"}},
};

/// The files that may include a library; a name ending in / is a folder.
const std::map<std::string, std::vector<std::string>> kFences{
    {"CLI/", {"tools/"}},
    {"Eigen/", {"src/adjust/block_solver.cpp", "src/sim/learn/network_trainer.cpp"}},
    {"cuda", {"cuda/"}},
    {"embree", {"src/core/embree.hpp"}},
    {"expat.h", {"src/io/tracks/xml_reader.cpp"}},
    {"hwy/", {"src/trace/", "src/splat/", "src/sim/learn/", "src/sim/scan/"}},
    {"las", {"src/io/las/laslib.cpp"}},
    {"microhttpd.h", {"src/view/server/http_server.cpp"}},
    {"nanoflann", {"src/compare/compare.cpp", "tools/bench/"}},
    {"nlohmann/",
     {"tools/", "src/io/input/", "src/io/drive/nuscenes_rows.hpp", "src/io/mesh/glb_mesh.cpp",
      "src/io/write/gltf/", "src/adjust/thickness_words.cpp", "src/gis/ept_index.cpp",
      "src/mesh/city_recipe.cpp", "src/objects/index_text.cpp", "src/splat/recipe.cpp",
      "src/view/server/city_json.cpp", "datasets/synth/"}},
    {"optix", {"cuda/"}},
    {"png.h", {"src/io/write/picture.cpp"}},
    {"proj.h", {"src/io/crs/known_crs.cpp"}},
    {"sqlite3.h", {"src/tiling/store/sqlite.cpp"}},
    {"tbb/", {"src/", "datasets/", "tools/"}},
    {"toml++/", {"src/core/toml_text.hpp"}},
    {"xxhash.h", {"src/core/hash.cpp"}},
    {"zstd.h", {"src/io/bag/zstd_block.cpp", "src/tiling/points/point_codec.cpp"}},
};

/// Headers that are included by .cpp files of their own folder only, and may show a library to them.
const Names kPrivateHeaders{
    "src/core/embree.hpp",
    "src/core/toml_text.hpp",
    "src/io/drive/nuscenes_rows.hpp",
    "src/io/input/sweep_words.hpp",
    "src/splat/search/plane_fit_inl.hpp",
    "src/splat/search/search_buffers.hpp",
    "src/splat/search/search_lanes_inl.hpp",
    "src/trace/groups/lanes_inl.hpp",
};

std::string module_of(const std::string& path) {
    const std::string below = path.starts_with("src/") ? path.substr(4) : path;
    return below.substr(0, below.find('/'));
}

const std::vector<std::string>* fence_of(const std::string& header) {
    for (const auto& [library, places] : kFences)
        if (header.starts_with(library)) return &places;
    return nullptr;
}

bool within(const std::string& path, const std::vector<std::string>& places) {
    return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
        return place.ends_with('/') ? path.starts_with(place) : path == place;
    });
}

/// Includes between folders of src/.
std::map<std::string, std::map<std::string, std::string>> folder_graph() {
    std::map<std::string, std::map<std::string, std::string>> graph;
    for (const SourceFile& file : sources()) {
        if (!file.path.starts_with("src/")) continue;
        for (const std::string& other : file.ours) {
            const std::size_t slash = other.rfind('/');
            if (slash == std::string::npos) continue;  // made by the build
            const std::string folder = "src/" + other.substr(0, slash);
            if (folder != file.folder())
                graph[file.folder()].emplace(folder, file.path + " includes " + other);
        }
    }
    return graph;
}

}  // namespace

TEST_CASE("modules include only what lies below them") {
    REQUIRE(sources().size() > 300);
    for (const SourceFile& file : sources()) {
        const auto rule = kMayUse.find(module_of(file.path));
        if (rule == kMayUse.end()) continue;  // tools see everything
        for (const std::string& other : file.ours) {
            const std::string module = module_of(other);
            if (other.find('/') == std::string::npos || module == rule->first) continue;
            INFO(file.path << " includes " << other);
            CHECK(rule->second.contains(module));
        }
    }
}

TEST_CASE("no folder includes, by whatever detour, itself") {
    const auto graph = folder_graph();
    REQUIRE(graph.size() > 10);
    for (const auto& [start, first] : graph)
        for (const auto& [next, why] : first) {
            Names seen;
            std::vector<std::string> open{next};
            while (!open.empty()) {
                const std::string at = open.back();
                open.pop_back();
                if (!seen.insert(at).second || !graph.contains(at)) continue;
                for (const auto& [further, reason] : graph.at(at)) open.push_back(further);
            }
            INFO(why << ", and " << next << " leads back to " << start);
            CHECK_FALSE(seen.contains(start));
        }
}

TEST_CASE("a library is included in the files that wrap it, and in no header") {
    std::size_t met = 0;
    for (const SourceFile& file : sources())
        for (const std::string& header : file.others) {
            const auto* fence = fence_of(header);
            if (!fence) continue;
            ++met;
            INFO(file.path << " includes <" << header << ">");
            CHECK(within(file.path, *fence));
            if (file.path.starts_with("src/"))
                CHECK((!file.is_header() || kPrivateHeaders.contains(file.path)));
        }
    CHECK(met > 40);
}

TEST_CASE("headers with a library inside are private") {
    for (const SourceFile& file : sources())
        for (const std::string& other : file.ours) {
            const std::string path = "src/" + other;
            if (!kPrivateHeaders.contains(path) || !file.is_header()) continue;
            INFO(file.path << " includes " << other);
            CHECK(module_of(file.path) == module_of(path));
        }
}

TEST_CASE("public headers need the standard library alone") {
    std::size_t headers = 0;
    for (const SourceFile& file : sources()) {
        if (!file.path.starts_with("include/")) continue;
        ++headers;
        for (const std::string& other : file.ours) {
            INFO(file.path << " includes " << other);
            CHECK(other.starts_with("citysplat/"));
        }
        for (const std::string& other : file.others) {
            INFO(file.path << " includes <" << other << ">");
            CHECK(other.find_first_of("./") == std::string::npos);
        }
    }
    CHECK(headers >= 4);
}

TEST_CASE("folders and files can be read") {
    std::map<std::string, std::size_t> folders;
    for (const SourceFile& file : sources()) {
        ++folders[file.folder()];
        INFO(file.path);
        CHECK(file.lines() <= 500);
    }
    for (const auto& [folder, files] : folders) {
        INFO(folder << " has " << files << " files");
        CHECK(files <= 26);
    }
}

TEST_CASE("a function has five parameters at most, or says why") {
    std::size_t seen = 0;
    for (const SourceFile& file : sources()) {
        std::vector<std::size_t> begins{0};
        for (std::size_t i = 0; i < file.text.size(); ++i)
            if (file.text[i] == '\n') begins.push_back(i + 1);
        for (const FunctionSeen& function : functions_of(file.text)) {
            ++seen;
            if (function.parameters <= 5) continue;
            // The comment above it, ten lines at most.
            const std::size_t first = function.line > 11 ? function.line - 11 : 0;
            const std::string above =
                file.text.substr(begins[first], begins[function.line - 1] - begins[first]);
            const std::size_t comment = above.rfind("parameters:");
            INFO(file.path << ":" << function.line << ": " << function.name << " has " << function.parameters
                           << " parameters");
            CHECK(comment != std::string::npos);
        }
    }
    CHECK(seen > 1500);
}

TEST_CASE("parameters are counted as a reader counts them") {
    const auto functions = functions_of(R"(
namespace a {
/// f(x, y)
std::map<int, int> f(int a, const std::map<int, std::pair<int, int>>& b = {}, void (*c)(int, int) = nullptr);
constexpr int table[] = {g(1, 2), 3};
struct S : T {
    S(int a, int b) : T{a, b}, c_(a, b, a, b, a, b) { h(1, 2, 3, 4, 5, 6, 7); }
    virtual void none() const = 0;
};
template <class A, class B>
void last(A a, B b) noexcept {}
}
)");
    REQUIRE(functions.size() == 4);
    CHECK(functions[0].name == "f");
    CHECK(functions[0].line == 4);
    CHECK(functions[0].parameters == 3);
    CHECK(functions[1].parameters == 2);
    CHECK(functions[2].name == "none");
    CHECK(functions[2].parameters == 0);
    CHECK(functions[3].name == "last");
    CHECK(functions[3].parameters == 2);
}
