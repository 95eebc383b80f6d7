/// How fast the splats of a city are loaded, verified, from the page cache. Usage: bench_load CITY
///
/// One thread loads every tile, five times over; the best round counts. The baselines are reading the same
/// files without looking at them, and copying as many bytes in memory.
#include "core/file.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <vector>

using namespace citysplat;

namespace {

double best_seconds(const std::function<void()>& work) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        best =
            std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
}

void run(const char* path) {
    const tiling::CityReader city(path);
    std::uint64_t bytes = 0, splats = 0;
    std::size_t largest = 0;
    for (const TileEntry& tile : city.tiles()) {
        bytes += tile.payload_bytes;
        splats += tile.splats;
        largest = std::max<std::size_t>(largest, tile.payload_bytes);
    }
    std::vector<std::filesystem::path> objects;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(path) / "objects"))
        if (entry.is_regular_file() && entry.file_size() <= largest) objects.push_back(entry.path());
    std::uint64_t object_bytes = 0;
    for (const auto& object : objects) object_bytes += std::filesystem::file_size(object);

    const double load_s = best_seconds([&] {
        for (std::size_t i = 0; i < city.tiles().size(); ++i) static_cast<void>(city.load(i));
    });
    std::vector<std::byte> buffer(largest), other(largest);
    const double read_s = best_seconds([&] {
        for (const auto& object : objects) {
            const File file(object, File::Mode::read);
            file.read_some_at(0, buffer);
        }
    });
    const double copy_s = best_seconds([&] {
        for (const TileEntry& tile : city.tiles())
            std::memcpy(other.data(), buffer.data(), tile.payload_bytes);
    });
    const auto line = [](const char* what, std::uint64_t n, double s) {
        std::printf("%-28s %8.2f GB/s\n", what, static_cast<double>(n) * 1e-9 / s);
    };
    std::printf("%zu tiles, %.1f M splats, %.2f bytes a splat\n", city.tiles().size(),
                static_cast<double>(splats) * 1e-6, static_cast<double>(bytes) / static_cast<double>(splats));
    line("load, verified", bytes, load_s);
    line("read only", object_bytes, read_s);
    line("copy in memory", bytes, copy_s);
    std::printf("load runs at %.2f of reading\n",
                (static_cast<double>(bytes) / load_s) / (static_cast<double>(object_bytes) / read_s));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: bench_load CITY\n");
        return 2;
    }
    try {
        run(argv[1]);
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bench_load: %s\n", e.what());
        return 1;
    }
}
