#include "power/city_scenarios.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>

using namespace citysplat;
using namespace citysplat::power;

namespace {

void print(const std::string& name, const SweepReport& report) {
    std::printf("%-32s %6zu operations %7zu states %7zu distinct %6zu bad\n", name.c_str(), report.operations,
                report.states, report.distinct, report.bad);
    for (const auto& [problem, cuts] : report.problems) {
        std::printf("    %zu x %s\n", cuts.size(), problem.c_str());
        for (std::size_t i = 0; i < std::min<std::size_t>(cuts.size(), 3); ++i)
            std::printf("        %s\n", cuts[i].c_str());
    }
    std::fflush(stdout);
}

/// Playing the whole log back gives what the program left.
void check_completeness(const Recording& recording) {
    ModelDisk disk(recording.before, NameModel::ordered);
    for (const Operation& operation : recording.operations) disk.apply(operation);
    CHECK(difference(recording.after.tree(), disk.live()) == "");
}

void sweep_all(SweepOptions options, std::size_t cuts_each) {
    const CityScenarios scenarios;
    SweepReport total;
    for (const Scenario& scenario : scenarios.all()) {
        INFO(scenario.name);
        const Recording recording = record(scenario);
        check_completeness(recording);
        options.stride = std::max<std::size_t>(1, recording.operations.size() / cuts_each);
        const SweepReport report = sweep(recording, options, check_of(scenario));
        print(scenario.name, report);
        CHECK(report.bad == 0);
        total += report;
    }
    std::printf("%-32s %6zu operations %7zu states %7zu distinct %6zu bad\n", "all", total.operations,
                total.states, total.distinct, total.bad);
}

/// The states that go bad when the operations for which `is_dropped` holds had never been asked for.
std::size_t bad_without(const std::string& scenario_name,
                        const std::function<bool(const Operation&)>& is_dropped) {
    const CityScenarios scenarios;
    const Scenario& scenario = scenarios.named(scenario_name);
    Recording recording = record(scenario);
    const std::size_t before = recording.operations.size();
    std::erase_if(recording.operations, is_dropped);
    REQUIRE(recording.operations.size() < before);
    return sweep(recording, {.stride = 3, .mixtures = 1, .at_the_end = 4}, check_of(scenario)).bad;
}

bool is_sync_of(const Operation& operation, const std::string& part_of_path) {
    return operation.kind == OperationKind::sync && operation.path.find(part_of_path) != std::string::npos;
}

}  // namespace

TEST_CASE("a power cut in any command that writes costs nothing that was published: a sample of the cuts") {
    sweep_all({.mixtures = 1, .at_the_end = 4}, 8);
}

TEST_CASE("a power cut after any operation of any command costs nothing that was published", "[slow]") {
    sweep_all({}, std::size_t{1} << 30);
}

TEST_CASE("the sweep finds directories that are not synced") {
    CHECK(bad_without("incremental build", [](const Operation& operation) {
              return operation.kind == OperationKind::sync &&
                     operation.path.find("sqlite") == std::string::npos &&
                     operation.path.find("/tmp/") == std::string::npos;
          }) > 0);
}

TEST_CASE("the sweep finds objects that are not synced") {
    CHECK(bad_without("incremental build", [](const Operation& o) { return is_sync_of(o, "/tmp/"); }) > 0);
}

TEST_CASE("the sweep finds a catalog that is not synced") {
    CHECK(bad_without("incremental build", [](const Operation& o) { return is_sync_of(o, ".sqlite"); }) > 0);
}
