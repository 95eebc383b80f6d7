#include "run_program.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <sstream>

namespace test = citysplat::test;

namespace {

const std::string kRun = CITYSPLAT_SOURCE_DIR "/tools/bench/run";
const std::string kPaperTables = CITYSPLAT_SOURCE_DIR "/tools/bench/paper_tables";
const std::string kHead = "| what | figure | against, in the same run | depends on the machine |";

/// First column, unit, baseline and last column of each row below the table's head.
std::set<std::string> rows_of(std::istream& text) {
    std::set<std::string> rows;
    std::string line;
    while (std::getline(text, line) && line != kHead) {
    }
    std::getline(text, line);  // |---|
    const auto without_number = [](const std::string& cell) { return cell.substr(cell.find(' ') + 1); };
    while (std::getline(text, line) && line.starts_with("| ")) {
        std::istringstream cells(line.substr(2));
        std::string what, figure, ratio, machine;
        std::getline(cells, what, '|'), std::getline(cells, figure, '|');
        std::getline(cells, ratio, '|'), std::getline(cells, machine, '|');
        rows.insert(what + without_number(figure.substr(1)) +
                    (ratio.size() > 2 ? without_number(ratio.substr(1)) : "") + machine);
    }
    return rows;
}

}  // namespace

TEST_CASE("tools/bench/run explains itself and refuses what it does not know") {
    const auto help = test::run_program({kRun, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Catch::Contains("--quick"));
    const auto wrong = test::run_program({kRun, "--nonsense"});
    CHECK(wrong.exit_code == 2);
    CHECK_THAT(wrong.err, Catch::Contains("--nonsense") && Catch::Contains("--help"));
}

TEST_CASE("tools/bench/run prints the table of the README", "[slow]") {
    const auto outcome = test::run_program({kRun, "--quick", "--build", CITYSPLAT_BUILD_DIR});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    std::istringstream printed(outcome.out);
    std::ifstream readme(CITYSPLAT_SOURCE_DIR "/README.md");
    const auto rows = rows_of(printed);
    CHECK(rows.size() > 10);
    CHECK(rows == rows_of(readme));
}

TEST_CASE("tools/bench/paper_tables explains itself and refuses what it does not know") {
    const auto help = test::run_program({kPaperTables, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Catch::Contains("--poisson") && Catch::Contains("--drive"));
    for (const std::string word : {"--nonsense", "--drive"}) {
        const auto wrong = test::run_program({kPaperTables, word});
        CHECK(wrong.exit_code == 2);
        CHECK_THAT(wrong.err, Catch::Contains(word) && Catch::Contains("--help"));
    }
}

TEST_CASE("tools/bench/paper_tables prints every table, and names what is missing", "[slow]") {
    const auto outcome = test::run_program(
        {kPaperTables, "--quick", "--build", CITYSPLAT_BUILD_DIR, "--poisson", "no_such_program"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    for (const std::string row : {"| basic splats |", "| descriptors, resampled |", "| adaptive, resampled |",
                                  "| surfels", "| mesh, IMLS", "| mesh, TSDF 10", "AN+GC",
                                  "with plane correction", "| mesh, Poisson | missing: no_such_program"})
        CHECK_THAT(outcome.out, Catch::Contains(row));
}
