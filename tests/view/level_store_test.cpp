#include "sim/memory_city.hpp"
#include "splat/levels/level_pyramid.hpp"
#include "temp_dir.hpp"
#include "view/server/view_api.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <functional>

using namespace citysplat;
using namespace citysplat::splat;
using test::TempDir;
namespace fs = std::filesystem;

namespace {

const CancelToken kGoOn;

PyramidOptions with(LevelStore& store) {
    PyramidOptions options;
    options.store = &store;
    options.store_key = "key";
    return options;
}

/// The coarsest cubes, as bytes.
std::vector<std::string> roots_of(const TileSource& city, const PyramidOptions& options) {
    LevelPyramid pyramid(city, options);
    std::vector<std::string> roots;
    for (const CubeId& id : pyramid.roots()) {
        const LevelCubePtr cube = pyramid.cube(id, kGoOn);
        const auto bytes = cube->discs.bytes();
        roots.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        roots.back() += std::to_string(cube->children) + " " + std::to_string(cube->pieces.size());
        for (const Piece& p : cube->pieces)
            roots.back() += " " + std::to_string(p.count) + " " + std::to_string(p.max[2]);
    }
    return roots;
}

std::vector<fs::path> files_of(const fs::path& directory) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

/// 10 000 tiles of 64 m that claim 100 000 splats each; those that are read have a few.
class LargeCity final : public TileSource {
  public:
    static constexpr int kAcross = 100;

    LargeCity() {
        for (int x = 0; x < kAcross; ++x)
            for (int y = 0; y < kAcross; ++y) {
                const double x0 = 64.0 * x, y0 = 64.0 * y;
                entries_.push_back(
                    {TileKey{0, x, y}, 100'000, 2'400'000, {x0, y0, 0}, {x0 + 63.9, y0 + 63.9, 12}});
            }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t tile) const override {
        ++loads;
        std::vector<Splat> splats;
        for (std::int32_t i = 1; i <= 40; ++i)
            splats.push_back({i * 12'000, (i * 7919 % 40 + 1) * 12'000, i % 12 * 8192, pack_normal({0, 0, 1}),
                              2000, 1, 30000, 10, SplatGroup::surface, 20, 100, 0});
        const auto& key = entries_[tile].key;
        return SplatTile(TileFrame{64 * key.ix, 64 * key.iy, 0}, splats);
    }
    const ClassMap& classes() const override { return classes_; }

    mutable std::atomic<int> loads{0};

  private:
    std::vector<TileEntry> entries_;
    ClassMap classes_;
};

}  // namespace

TEST_CASE("cubes that are kept on disk come back as they were, without reading a tile") {
    const TempDir dir;
    const test::MemoryCity city(test::street(651000, 6861000, 300), 32);
    const auto expected = roots_of(city, {});
    LevelStore store(dir.path(), 1 << 30);
    CHECK(roots_of(city, with(store)) == expected);
    CHECK(store.used_bytes() > 0);
    const int loads = city.loads;
    CHECK(roots_of(city, with(store)) == expected);
    LevelStore again(dir.path(), 1 << 30);
    CHECK(again.used_bytes() == store.used_bytes());
    CHECK(roots_of(city, with(again)) == expected);
    CHECK(city.loads == loads);

    PyramidOptions other = with(again);
    other.store_key = "another";
    CHECK(roots_of(city, other) == expected);
    CHECK(city.loads > loads);
}

TEST_CASE("a damaged file of a cube is made again") {
    const TempDir dir;
    const test::MemoryCity city(test::street(651000, 6861000, 300), 32);
    LevelStore store(dir.path(), 1 << 30);
    const auto expected = roots_of(city, with(store));
    const auto damages = std::vector<std::function<void(const fs::path&)>>{
        [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) - 1); },
        [](const fs::path& p) { fs::resize_file(p, 0); },
        [](const fs::path& p) { std::ofstream(p, std::ios::app) << "x"; },
        [](const fs::path& p) {
            std::fstream file(p, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(static_cast<std::streamoff>(fs::file_size(p) / 2));
            file.put('\x5a').put('\x5b').put('\x5c');
        },
        [](const fs::path& p) {  // the file of another cube
            fs::copy_file(p, p.parent_path() / "keep");
            fs::rename(p.parent_path() / "keep", p.parent_path() / "20_1_1_1");
            fs::remove(p);
            fs::rename(p.parent_path() / "20_1_1_1", p);
            fs::resize_file(p, 39);
        }};
    for (const auto& damage : damages) {
        for (const fs::path& file : files_of(dir.path())) damage(file);
        CHECK(roots_of(city, with(store)) == expected);
        const int loads = city.loads;
        CHECK(roots_of(city, with(store)) == expected);
        CHECK(city.loads == loads);
    }
}

TEST_CASE("a store keeps to its bytes, and one that cannot write does no harm") {
    const TempDir dir;
    const test::MemoryCity city(test::street(651000, 6861000, 600), 32);
    const auto expected = roots_of(city, {});
    LevelStore whole(dir.path() / "whole", 1 << 30);
    CHECK(roots_of(city, with(whole)) == expected);
    const std::uint64_t cap = whole.used_bytes() / 2;
    LevelStore small(dir.path() / "small", cap);
    CHECK(roots_of(city, with(small)) == expected);
    std::uint64_t bytes = 0;
    for (const fs::path& file : files_of(dir.path() / "small")) bytes += fs::file_size(file);
    CHECK(bytes <= cap);
    CHECK(bytes == small.used_bytes());
    // A smaller cap holds for what is there already.
    const LevelStore smaller(dir.path() / "whole", cap);
    CHECK(smaller.used_bytes() <= cap);

    std::ofstream(dir.path() / "file") << "not a directory";
    LevelStore impossible(dir.path() / "file", 1 << 30);
    CHECK(roots_of(city, with(impossible)) == expected);
}

TEST_CASE("the first picture of a billion splats with levels reads no tile and asks for a few cubes",
          "[slow]") {
    const TempDir dir;
    const LargeCity city;
    view::CityFacts facts;
    facts.digest = "large";
    facts.tile_size_m = 64;
    LevelStore store(dir.path(), std::uint64_t{1} << 30);
    view::ApiOptions options;
    options.port = 8765;
    options.token = std::string(32, '7');
    options.levels.store = &store;
    const auto first_picture = [&] {
        view::ViewApi api({city, facts}, options);
        std::size_t requests = 0, discs = 0;
        const auto get = [&](const std::string& target) {
            ++requests;
            view::Response r = api.answer(
                {"GET", target, {{"Host", "127.0.0.1:8765"}, {"X-Citysplat-Token", options.token}}}, kGoOn);
            REQUIRE(r.status == 200);
            return r;
        };
        const auto told = nlohmann::json::parse(get("/api/city").body);
        CHECK(told["splats"] == 1'000'000'000);
        for (const auto& root : told["roots"]) {
            std::string target = "/api/cube/" + told["levels_key"].get<std::string>();
            for (const auto& number : root) target += "/" + number.dump();
            discs += get(target).tail.size() / 24;
        }
        CHECK(requests <= 9);
        CHECK(discs > 100);
        return discs;
    };
    const std::size_t discs = first_picture();
    CHECK(city.loads >= 10'000);
    city.loads = 0;
    CHECK(first_picture() == discs);
    CHECK(city.loads == 0);
}
