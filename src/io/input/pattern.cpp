#include "io/input/pattern.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstring>
#include <glob.h>

namespace citysplat::io {

namespace {

/// What the function that glob() calls has to say.
thread_local std::string problem;

int note_problem(const char* folder, int error) {
    if (error == ENOENT || error == ENOTDIR) return 0;
    problem = std::string(folder) + ": " + std::strerror(error);
    return 1;
}

}  // namespace

std::vector<std::filesystem::path> matches_of(const std::string& pattern) {
    problem.clear();
    ::glob_t found{};
    const int result = ::glob(pattern.c_str(), 0, note_problem, &found);
    std::vector<std::filesystem::path> paths;
    if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (result != 0 && result != GLOB_NOMATCH)
        throw IoError("cannot look for " + pattern + ": " + (problem.empty() ? "out of memory" : problem));
    return paths;
}

}  // namespace citysplat::io
