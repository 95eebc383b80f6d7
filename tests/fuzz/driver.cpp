/// Runs a fuzz target without libFuzzer: the seeds as they are, then changes of them for some seconds. The
/// changes depend only on their number, so that a failure can be repeated.
///   fuzz_NAME SECONDS CORPUS_DIR        (0 s: 300 changes)
#include "core/math/rng_hd.hpp"
#include "fuzz.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace citysplat;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Bytes> seeds;
    for (const auto& path : paths) {
        const auto bytes = read_file(path);
        const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
        seeds.emplace_back(first, first + bytes.size());
    }
    return seeds;
}

/// One to eight edits: a bit, a byte, an interesting number, a cut, a repeated or moved piece.
Bytes changed(Bytes b, std::uint64_t number) {
    std::uint64_t counter = 0;
    const auto random = [&](std::uint64_t n) {
        return static_cast<std::size_t>(rng::bits(number, counter++) % std::max<std::uint64_t>(n, 1));
    };
    constexpr std::uint64_t kNumbers[]{0,
                                       1,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       ~std::uint64_t{0},
                                       std::uint64_t{1} << 62};
    for (std::size_t edits = 1 + random(8); edits > 0 && !b.empty(); --edits) {
        const std::size_t at = random(b.size());
        switch (random(6)) {
            case 0:
                b[at] = static_cast<std::uint8_t>(b[at] ^ (1u << random(8)));
                break;
            case 1:
                b[at] = static_cast<std::uint8_t>(random(256));
                break;
            case 2: {
                const std::uint64_t value = kNumbers[random(std::size(kNumbers))];
                const std::size_t width = std::min<std::size_t>(std::size_t{1} << random(4), b.size() - at);
                std::copy_n(reinterpret_cast<const std::uint8_t*>(&value), width,
                            b.begin() + static_cast<std::ptrdiff_t>(at));
                break;
            }
            case 3:
                b.resize(at);
                break;
            case 4: {
                const Bytes piece(b.begin() + static_cast<std::ptrdiff_t>(at),
                                  b.begin() + static_cast<std::ptrdiff_t>(
                                                  at + random(std::min<std::size_t>(64, b.size() - at))));
                b.insert(b.begin() + static_cast<std::ptrdiff_t>(random(b.size())), piece.begin(),
                         piece.end());
                break;
            }
            default:
                b.erase(b.begin() + static_cast<std::ptrdiff_t>(at),
                        b.begin() + static_cast<std::ptrdiff_t>(
                                        at + random(std::min<std::size_t>(64, b.size() - at))));
        }
    }
    return b;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SECONDS CORPUS_DIR\n", argv[0]);
        return 2;
    }
    const auto seeds = read_corpus(argv[2]);
    if (seeds.empty()) {
        std::fprintf(stderr, "%s: no seeds\n", argv[2]);
        return 2;
    }
    for (const auto& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
    constexpr std::uint64_t kAtLeast = 300;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
    std::uint64_t runs = 0;
    for (; runs < kAtLeast || std::chrono::steady_clock::now() < end; ++runs) {
        const Bytes input = changed(seeds[runs % seeds.size()], runs);
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("%zu seeds, %llu changes of them\n", seeds.size(), static_cast<unsigned long long>(runs));
}
