#include "core/error.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/toy_city.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

/// toy_build CITY INPUT…: builds a city with the toy processor, for tests that kill it.
/// toy_build --mirror CITY COPY: copies one. Exit codes as those of citysplat.
int main(int argc, char** argv) {
    using namespace citysplat;
    try {
        if (argc == 4 && std::string(argv[1]) == "--mirror") {
            CancelToken cancel;
            Progress progress;
            tiling::mirror_city(argv[2], argv[3], cancel, progress);
            return 0;
        }
        std::vector<std::filesystem::path> inputs(argv + 2, argv + argc);
        const auto report = test::build_toy(argv[1], test::toy_options(inputs));
        std::printf("%s\n", report.digest.hex().c_str());
        return 0;
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
