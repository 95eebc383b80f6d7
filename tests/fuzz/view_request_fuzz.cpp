#include "core/error.hpp"
#include "core/text.hpp"
#include "fuzz.hpp"
#include "sim/memory_city.hpp"
#include "temp_dir.hpp"
#include "view/server/view_api.hpp"

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

using namespace citysplat;

namespace {

const std::string kToken(32, '7');

/// Another generation: one disc less.
struct Earlier final : view::GenerationSource {
    std::vector<view::GenerationFacts> list() const override { return {{1, "then", "build"}}; }
    Opened open(std::int64_t number) const override {
        if (number != 1) throw ConfigError("not retained");
        view::CityFacts facts;
        facts.generation = 1;
        facts.digest = "1";
        return {
            std::make_unique<test::MemoryCity>(std::vector<test::WorldDisc>{{{1, 2, 0}, {0, 0, 1}, 0.5}}, 64),
            facts};
    }
};

/// One scan of one point.
struct Scans {
    test::TempDir dir;
    std::optional<view::ScanFolder> folder;
    std::optional<view::DistanceCloud> distances;

    Scans() {
        const auto write = [&](const char* name, std::string_view text) {
            std::filesystem::create_directories((dir.path() / name).parent_path());
            std::ofstream(dir.path() / name, std::ios::binary) << text;
        };
        write("run.toml", "complete = true\n");
        write("poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n");
        write("times.txt", "1\n");
        write("velodyne/000000.bin", std::string_view("\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\0\0", 16));
        folder.emplace(dir.path());
        write("distances.ply",
              "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\nproperty "
              "double z\n"
              "property float distance\nproperty ushort intensity\nproperty ushort label\nend_header\n"
              "1 2 3 0.01 100 1\n");
        distances.emplace(dir.path() / "distances.ply");
    }
};

/// One input is everywhere.
struct OneInput final : view::Provenance {
    std::vector<Square> squares() const override { return {{0, 0, {}}}; }
    std::vector<InputPoints> around(Vec3d, double) const override { return {{0, 1}}; }
};

/// A few discs, so that every route has something to tell.
struct Server {
    Earlier earlier;
    Scans scans;
    test::MemoryCity city{{{{1, 2, 0}, {0, 0, 1}, 0.5}, {{70, 2, 1}, {0, 1, 0}, 0.5}}, 64};
    OneInput provenance;
    view::CityFacts facts = one_input();
    view::ViewApi api{{city, facts, &provenance}, options()};

    static view::CityFacts one_input() {
        view::CityFacts facts;
        facts.generation = 2;
        facts.tile_size_m = 64;
        facts.tiles.resize(2);
        facts.inputs = {"a.las"};
        return facts;
    }

    view::ApiOptions options() const {
        view::ApiOptions options;
        options.port = 8765;
        options.token = kToken;
        options.generations = &earlier;
        options.scans = &*scans.folder;
        options.distances = &*scans.distances;
        return options;
    }
};

}  // namespace

/// Method, target and headers, a line each. Nothing may be told about the city without the token, nothing at
/// all to another host, and every answer must keep the page to itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Server server;
    static const CancelToken go_on;
    view::Request request;
    for (const Line& line : Lines(std::string_view(reinterpret_cast<const char*>(data), size))) {
        if (line.number == 1)
            request.method = line.text;
        else if (line.number == 2)
            request.target = line.text;
        else if (const std::size_t colon = line.text.find(": "); colon != std::string_view::npos)
            request.headers.push_back(
                {std::string(line.text.substr(0, colon)), std::string(line.text.substr(colon + 2))});
    }
    const view::Response response = server.api.answer(request, go_on);
    if (!response.header("Content-Security-Policy") || response.status == 500) std::abort();
    if (response.status == 200 || response.status == 304) {
        const auto host = request.only("Host");
        if (host != "127.0.0.1:8765" && host != "localhost:8765") std::abort();
        if (request.target.starts_with("/api/") && request.only("X-Citysplat-Token") != kToken) std::abort();
    }
    return 0;
}
