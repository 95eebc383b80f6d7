#include "core/error.hpp"
#include "tiling/toy_city.hpp"

#include <cstdio>
#include <cstdlib>

/// toy_build CITY INPUT…: builds a city with the toy processor, for tests that kill it. Exit codes as those
/// of citysplat.
int main(int argc, char** argv) {
    using namespace citysplat;
    try {
        std::vector<std::filesystem::path> inputs(argv + 2, argv + argc);
        const auto report = test::build_toy(argv[1], test::toy_options(inputs));
        std::printf("%s\n", report.digest.hex().c_str());
        return 0;
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
