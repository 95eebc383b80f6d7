#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace citysplat::test {

/// A file of C++ or CUDA, by its name below the project's root.
struct SourceFile {
    std::string path;
    std::string text;
    std::vector<std::string> ours;    ///< what it includes in quotes
    std::vector<std::string> others;  ///< what it includes in angle brackets

    std::string folder() const;  ///< "src/sim/scan"
    bool is_header() const;
    std::size_t lines() const;
};

/// Everything below these folders of the project, sorted by name.
std::vector<SourceFile> read_sources(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders);

/// A function that is declared or defined in a namespace or a class.
struct FunctionSeen {
    std::string name;
    std::size_t line = 0;
    std::size_t parameters = 0;
};

/// All of a file. Knows enough of C++ for files that clang-format has been through.
std::vector<FunctionSeen> functions_of(const std::string& text);

}  // namespace citysplat::test
