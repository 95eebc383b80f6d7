#include "help_page.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;
namespace test = citysplat::test;
using test::Outcome;
using test::TempDir;

namespace {

bool has_program(const std::string& name) {
    return test::run_program({"sh", "-c", "command -v " + name}).exit_code == 0;
}

std::string content_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// Proposals for a command line whose last word is being typed.
std::vector<std::string> proposals(const std::string& script, const std::string& line) {
    std::string words;
    std::istringstream in(line);
    int count = 0;
    for (std::string word; in >> word; ++count) words += "'" + (word == "_" ? "" : word) + "' ";
    const Outcome outcome = test::run_program({"bash", "-c",
                                               "source '" + script + "'; COMP_WORDS=(" + words +
                                                   "); COMP_CWORD=" + std::to_string(count - 1) +
                                                   "; _citysplat; printf '%s\n' \"${COMPREPLY[@]}\""});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    std::vector<std::string> found;
    std::istringstream lines(outcome.out);
    for (std::string word; lines >> word;) found.push_back(word);
    return found;
}

std::string completion_file(const TempDir& dir, const std::string& shell) {
    const Outcome script = test::citysplat({"completion", shell});
    REQUIRE(script.exit_code == 0);
    const std::string path = dir / ("completion." + shell);
    std::ofstream(path) << script.out;
    return path;
}

}  // namespace

TEST_CASE("bash completes verbs, flags and words") {
    const TempDir dir;
    const std::string script = completion_file(dir, "bash");
    using Words = std::vector<std::string>;
    // "_" stands for a word of which nothing has been typed.
    const std::vector<std::pair<std::string, Words>> whole{
        {"citysplat bui", {"build"}},
        {"citysplat stat", {"status"}},
        {"citysplat --json stat", {"status"}},
        {"citysplat --threads 2 verif", {"verify"}},
        {"citysplat frobn", {}},
        {"citysplat --prog", {"--progress"}},
        {"citysplat --progress ba", {"bar"}},
        {"citysplat --progress = ba", {"bar"}},
        {"citysplat build city --meth", {"--method"}},
        {"citysplat build city --method adap", {"adaptive"}},
        {"citysplat build city --method = adap", {"adaptive"}},
        {"citysplat build city --trajectory dri", {}},  // files: the shell's own
        {"citysplat build cit", {}},
        {"citysplat bank _", {"build", "list", "picture"}},
        {"citysplat bank bu", {"build"}},
        {"citysplat bank build --least", {"--least-points"}},
        {"citysplat bank build --progress ba", {"bar"}},
        {"citysplat build bank --least", {}},  // build has no such flag
        {"citysplat completion ba", {}},
        {"citysplat rollback city --meth", {}},
    };
    REQUIRE(whole.size() == 20);
    for (const auto& [line, expected] : whole) {
        INFO(line);
        CHECK(proposals(script, line) == expected);
    }
    const Words verbs = proposals(script, "citysplat _");
    CHECK(verbs == test::all_verbs());
}

TEST_CASE("zsh and fish take their scripts and propose the same verbs") {
    const TempDir dir;
    if (has_program("zsh")) {
        const Outcome outcome = test::run_program(
            {"zsh", "-f", "-c",
             "autoload -U compinit && compinit -D; source '" + completion_file(dir, "zsh") +
                 "'; setopt ksharrays shwordsplit; COMP_WORDS=(citysplat bank ''); COMP_CWORD=2; "
                 "_citysplat_words; echo ${COMPREPLY[@]}"});
        CHECK(outcome.out == "build list picture\n");
        CHECK(outcome.err.empty());
    } else {
        WARN("zsh is not installed");
    }
    if (has_program("fish")) {
        const std::string script = completion_file(dir, "fish");
        const auto ask = [&](const std::string& line) {
            return test::run_program(
                       {"fish", "--no-config", "-c", "source '" + script + "'; complete -C '" + line + "'"})
                .out;
        };
        CHECK_THAT(ask("citysplat bui"), Catch::StartsWith("build\t"));
        CHECK_THAT(ask("citysplat build --meth"), Catch::StartsWith("--method\t"));
        CHECK_THAT(ask("citysplat build --method adap"), Catch::StartsWith("adaptive\t"));
        CHECK(ask("citysplat rollback --meth").empty());
    } else {
        WARN("fish is not installed");
    }
}

TEST_CASE("every verb has a manual page with every flag of its help") {
    const TempDir dir;
    const std::string pages = dir / "pages";
    const Outcome made = test::citysplat({"--json", "manual", pages});
    REQUIRE(made.exit_code == 0);
    for (const auto& option : test::all_options()) {
        INFO(option.verb << " " << option.name);
        const std::string page = content_of(
            fs::path(pages) / (option.verb.empty() ? "citysplat.1" : "citysplat-" + option.verb + ".1"));
        std::string name;
        // The help shows "--no-open{false}": what it sets.
        for (const char c : option.name.substr(0, option.name.find('{')))
            name += c == '-' ? std::string("\\-") : std::string(1, c);
        CHECK_THAT(page, Catch::Contains("\\fB" + name + "\\fR"));
    }
    if (!has_program("man")) {
        WARN("man is not installed");
        return;
    }
    const auto written = nlohmann::json::parse(made.out);
    for (const auto& name : written.at("pages")) {
        const Outcome shown = test::run_program(
            {"man", "-l", "--warnings", "-E", "UTF-8", pages + "/" + name.get<std::string>()});
        INFO(name);
        CHECK(shown.exit_code == 0);
        CHECK(shown.err.empty());
        CHECK_THAT(shown.out, Catch::Contains("NAME"));
    }
}

TEST_CASE("the version names the commit, the libraries and the formats") {
    const auto facts = nlohmann::json::parse(test::citysplat({"--version", "--json"}).out);
    for (const char* key : {"version", "revision", "compiler", "gpu", "laz", "instruction_set"})
        CHECK_FALSE(facts.at(key).get<std::string>().empty());
    for (const auto& [library, version] : facts.at("libraries").items()) {
        INFO(library);
        CHECK_FALSE(version.get<std::string>().empty());
    }
    CHECK(facts.at("formats").at("catalog").get<int>() >= 4);
    CHECK_THAT(test::citysplat({"--version"}).out,
               Catch::StartsWith("citysplat " + facts.at("version").get<std::string>() + " ("));
}
