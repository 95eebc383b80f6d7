/// How fast the splats of a city are loaded, verified, from the page cache.
///
/// One thread loads every tile, five times over; the best round counts. The baselines are reading the same
/// files without looking at them, and copying as many bytes in memory.
#include "bench/bench_clock.hpp"
#include "bench/bench_main.hpp"
#include "core/file.hpp"
#include "tiling/store/city_reader.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

using namespace citysplat;

namespace {

constexpr int kRounds = 5;

double gigabytes_per_s(std::uint64_t bytes, const bench::Elapsed& elapsed) {
    return static_cast<double>(bytes) * 1e-9 / elapsed.wall_s;
}

/// The objects of a city that are no larger than its largest tile.
std::vector<std::filesystem::path> objects_up_to(std::size_t largest, const std::filesystem::path& city) {
    std::vector<std::filesystem::path> objects;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(city / "objects"))
        if (entry.is_regular_file() && entry.file_size() <= largest) objects.push_back(entry.path());
    return objects;
}

void run(const std::string& path, bench::Report& report) {
    const tiling::CityReader city(path);
    std::uint64_t bytes = 0, splats = 0;
    std::size_t largest = 0;
    for (const TileEntry& tile : city.tiles()) {
        bytes += tile.payload_bytes;
        splats += tile.splats;
        largest = std::max<std::size_t>(largest, tile.payload_bytes);
    }
    const double bytes_a_splat = bench::ratio(static_cast<double>(bytes), static_cast<double>(splats));
    const auto objects = objects_up_to(largest, path);
    std::uint64_t object_bytes = 0;
    for (const auto& object : objects) object_bytes += std::filesystem::file_size(object);

    const auto load = bench::best_of(kRounds, [&] {
        for (std::size_t i = 0; i < city.tiles().size(); ++i) static_cast<void>(city.load(i));
    });
    std::vector<std::byte> buffer(largest), other(largest);
    const auto read = bench::best_of(kRounds, [&] {
        for (const auto& object : objects) {
            const File file(object, File::Mode::read);
            file.read_some_at(0, buffer);
        }
    });
    const auto copy = bench::best_of(kRounds, [&] {
        for (const TileEntry& tile : city.tiles())
            std::memcpy(other.data(), buffer.data(), tile.payload_bytes);
    });
    const double load_rate = gigabytes_per_s(bytes, load), read_rate = gigabytes_per_s(object_bytes, read);
    report.text(std::to_string(city.tiles().size()) + " tiles, " + std::to_string(splats) + " splats, " +
                bench::three_digits(bytes_a_splat) + " bytes a splat");
    report.detail({"copy in memory", gigabytes_per_s(bytes, copy), "GB/s"});
    report.detail({"reading the files", read_rate, "GB/s"});
    report.row({"tiles loaded and verified, one thread", load_rate, "GB/s",
                bench::Ratio{bench::ratio(load_rate, read_rate), "reading the files"}});
}

}  // namespace

int main(int argc, char** argv) {
    std::string city;
    return bench::run_bench(
        {"bench_load",
         "How fast the splats of a city are loaded and verified, against reading the same files and copying "
         "as "
         "many bytes in memory.",
         [&](bench::Flags& flags) { flags.required("CITY", city, "a city that citysplat build made"); },
         [&](bench::Report& report) { run(city, report); }},
        argc, argv);
}
