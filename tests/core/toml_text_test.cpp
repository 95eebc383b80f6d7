#include "core/toml_text.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;

namespace {

std::string repeated(const std::string& word, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += word;
    return all;
}

}  // namespace

TEST_CASE("a key of too many parts is refused by its line and does not overflow the stack") {
    const std::string deep = repeated("a.", 200'000) + "a";
    for (const std::string& text :
         {"x = 1\n" + deep + " = 1\n", "x = 1\n[" + deep + "]\n", "x = 1\n[[" + deep + "]]\n",
          "x = 1\ny = { " + deep + " = 1 }\n", "x = 1\n" + repeated("\"a.b\" . ", 100'000) + "a = 1\n"})
        CHECK_THROWS_WITH(parse_toml(text, "file.toml"), "file.toml: line 2: a key of more than 64 parts");
}

TEST_CASE("dots that are not between the parts of a key mean nothing") {
    const std::string dots = repeated(".", 500), words = repeated("a.", 500);
    const toml::table table =
        parse_toml("# " + dots + " " + words + "\nx.y.z = 1\n[ p . q ]\ntext = \"" + words + "\"\nother = '" +
                       words + "'\nescaped = \"\\\"" + words + "\"\nnumbers = [" + repeated("1.5, ", 500) +
                       "1.5]\n" + "long = \"\"\"\n" + dots + "\n\"\"\"\n",
                   "file.toml");
    CHECK(table["x"]["y"]["z"].value<int>() == 1);
    CHECK(table["p"]["q"]["text"].value<std::string>() == words);
    CHECK(table["p"]["q"]["numbers"].as_array()->size() == 501);
    CHECK(parse_toml(repeated("a.", 60) + "a = 1\n", "file.toml").size() == 1);
}
