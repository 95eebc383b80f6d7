#include "core/math/rng_hd.hpp"
#include "view/server/http_server.hpp"
#include "view/server/view_api.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

/// Shows a city that nobody built, as `citysplat view` shows a real one:
///
///   made_up_city ACROSS SPLATS LEVELS
///
/// ACROSS × ACROSS tiles of 64 m with SPLATS splats each: a street of ground and walls, the same in every
/// tile. So all blocks of 512 m are the same: the coarse levels of one of them, moved, are kept in the
/// directory LEVELS for all, as view --make-levels would have made them in minutes. ACROSS is a multiple
/// of 8. Prints the address; SIGINT ends it.

using namespace citysplat;

namespace {

std::atomic<bool> ending{false};

constexpr int kTile_m = 64;

/// Two thirds ground, a third walls of 12 m around it, a metre within the edges of the tile.
std::vector<Splat> street(std::size_t count) {
    std::vector<Splat> splats;
    const double room_m = kTile_m - 2;
    for (std::size_t i = 0; i < count; ++i) {
        const auto draw = [&](std::uint64_t dimension) {
            return static_cast<double>(rng::mix(4 * i + dimension + 1) >> 11) * 0x1p-53;
        };
        Vec3d at{1 + room_m * draw(0), 1 + room_m * draw(1), 0.5}, normal{0, 0, 1};
        const bool wall = i % 3 == 0;
        if (wall) {
            const bool west = i % 2 == 0;
            at = west ? Vec3d{1, at.y, 0.5 + 12 * draw(2)} : Vec3d{at.x, 1, 0.5 + 12 * draw(2)};
            normal = west ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0};
        }
        Splat splat{};
        splat.x = static_cast<std::int32_t>(to_lattice(at.x));
        splat.y = static_cast<std::int32_t>(to_lattice(at.y));
        splat.z = static_cast<std::int32_t>(to_lattice(at.z));
        splat.normal = pack_normal(normal);
        splat.radius = static_cast<std::uint16_t>(kLatticePerMetre / 8);
        splat.label = wall ? 2 : 1;
        splat.intensity = static_cast<std::uint16_t>(65535 * draw(3));
        splats.push_back(splat);
    }
    return splats;
}

class MadeUpCity final : public TileSource {
  public:
    MadeUpCity(int across, std::size_t splats) : splats_(street(splats)) {
        for (int x = 0; x < across; ++x)
            for (int y = 0; y < across; ++y) {
                const Vec3d corner{static_cast<double>(kTile_m * x), static_cast<double>(kTile_m * y), 0};
                entries_.push_back({{0, x, y},
                                    splats,
                                    SplatTile::body_bytes(splats),
                                    corner + Vec3d{0.5, 0.5, 0.25},
                                    corner + Vec3d{63.5, 63.5, 13}});
            }
    }
    std::span<const TileEntry> tiles() const override { return entries_; }
    SplatTile load(std::size_t tile) const override {
        const TileKey& key = entries_[tile].key;
        return SplatTile(TileFrame{std::int64_t{kTile_m} * key.ix, std::int64_t{kTile_m} * key.iy, 0},
                         splats_);
    }
    const ClassMap& classes() const override { return classes_; }

  private:
    std::vector<Splat> splats_;
    ClassMap classes_;
    std::vector<TileEntry> entries_;
};

/// Keeps the cubes of 128, 256 and 512 m.
void keep_blocks(splat::LevelStore& store, const std::string& key, int across, std::size_t splats) {
    constexpr int kBlockTiles = 8, kBlockLevel = 6;
    // One tile more than the block, so that the block is no larger than the roots.
    const MadeUpCity block(kBlockTiles + 1, splats);
    splat::LevelPyramid levels(block, {});
    for (int level = splat::kLastCellLevel + 1; level <= kBlockLevel; ++level) {
        const splat::LevelCubePtr made = levels.cube({level, 0, 0, 0}, CancelToken());
        const int tiles = 1 << (level - splat::kLastCellLevel);
        for (int x = 0; x < across / tiles; ++x)
            for (int y = 0; y < across / tiles; ++y) {
                splat::LevelCube moved;
                moved.id = {level, x, y, 0};
                moved.pieces = made->pieces;
                moved.children = made->children;
                const TileFrame frame = made->discs.frame();
                const std::int64_t side_m = std::int64_t{tiles} * kTile_m;
                moved.discs = SplatTile(TileFrame{frame.x_m + x * side_m, frame.y_m + y * side_m, frame.z_m},
                                        made->discs.size());
                std::ranges::copy(made->discs.bytes(), moved.discs.mutable_bytes().begin());
                store.keep(key, moved);
            }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("usage: made_up_city ACROSS SPLATS LEVELS\n", stderr);
        return 2;
    }
    std::signal(SIGINT, [](int) { ending = true; });
    const auto splats_per_tile = static_cast<std::size_t>(std::atoll(argv[2]));
    const MadeUpCity city(std::atoi(argv[1]), splats_per_tile);
    splat::LevelStore store(argv[3], std::uint64_t{2} << 30);
    view::CityFacts facts;
    facts.name = "made up";
    facts.generation = 1;
    facts.tile_size_m = kTile_m;
    facts.digest = std::string("made up ") + argv[1] + " " + argv[2];
    facts.tiles.resize(city.tiles().size());
    view::ApiOptions options;
    options.levels.store = &store;
    options.levels.store_key = view::ShownCity{city, facts}.levels_key();
    // In a process of its own: what that needs is not what a viewer needs.
    const pid_t maker = ::fork();
    if (maker == 0) {
        keep_blocks(store, options.levels.store_key, std::atoi(argv[1]), splats_per_tile);
        ::_exit(0);
    }
    ::waitpid(maker, nullptr, 0);
    view::return_memory_early();
    view::HttpServer server({});
    options.port = server.port();
    options.token = view::Gate::new_token();
    view::ViewApi api({city, facts}, options);
    server.start(
        [&](const view::Request& request, const CancelToken& cancel) { return api.answer(request, cancel); });
    std::printf("http://127.0.0.1:%d/#t=%s\n", server.port(), options.token.c_str());
    std::fflush(stdout);
    while (!ending) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server.stop();
    return 0;
}
