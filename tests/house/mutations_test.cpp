#include "house/source_tree.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

using namespace citysplat::test;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The lines "key value" of a mutation (tests/sabotage/run).
std::map<std::string, std::string> fields_of(const fs::path& mutation) {
    std::map<std::string, std::string> fields;
    std::istringstream lines(text_of(mutation));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t end = line.find(' '), value = line.find_first_not_of(' ', end);
        fields[line.substr(0, end)] =
            value == std::string::npos ? "" : line.substr(value, line.find_last_not_of(' ') + 1 - value);
    }
    return fields;
}

std::size_t occurrences(const std::string& of, const std::string& in) {
    std::size_t count = 0;
    for (std::size_t at = in.find(of); at != std::string::npos; at = in.find(of, at + 1)) ++count;
    return count;
}

}  // namespace

TEST_CASE("every mutation of the sabotage fits the source, and its test exists") {
    const fs::path root = CITYSPLAT_SOURCE_DIR;
    std::string tests;
    for (const SourceFile& file : read_sources(root, {"tests"})) tests += file.text;
    std::size_t mutations = 0;
    for (const auto& entry : fs::directory_iterator(root / "tests/sabotage/mutations")) {
        const auto fields = fields_of(entry.path());
        INFO(entry.path().filename().string());
        for (const char* key : {"what", "file", "from", "to", "target", "test"})
            REQUIRE(fields.contains(key));
        // When a line moves, its mutation is mended with it.
        CHECK(occurrences(fields.at("from"), text_of(root / fields.at("file"))) == 1);
        std::string test = fields.at("test");
        if (test.ends_with('*')) test.pop_back();
        CHECK(occurrences("TEST_CASE(\"" + test, tests) + occurrences("TEST_CASE(\n    \"" + test, tests) >
              0);
        ++mutations;
    }
    CHECK(mutations > 25);
}
