#include "power/city_scenarios.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>

using namespace citysplat;
using namespace citysplat::power;

namespace {

void print(const std::string& name, const SweepReport& report) {
    std::printf("%-44s %6zu operations %7zu states %7zu distinct %6zu bad\n", name.c_str(), report.operations,
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
    ModelDisk disk = recording.disk(NameModel::ordered);
    for (const Operation& operation : recording.operations) disk.apply(operation);
    CHECK(difference(recording.after.tree(), disk.live()) == "");
}

/// The sum of what was swept, printed line by line.
class Table {
  public:
    void add(const std::string& name, const SweepReport& report) {
        print(name, report);
        CHECK(report.bad == 0);
        total_ += report;
    }
    ~Table() {
        total_.problems.clear();
        print("all", total_);
    }

  private:
    SweepReport total_;
};

void sweep_all(SweepOptions options, std::size_t cuts_each) {
    const CityScenarios scenarios;
    Table table;
    for (const Scenario& scenario : scenarios.all()) {
        INFO(scenario.name);
        const Recording recording = record(scenario);
        check_completeness(recording);
        options.stride = std::max<std::size_t>(1, recording.operations.size() / cuts_each);
        table.add(scenario.name, sweep(recording, options, check_of(scenario)));
    }
}

/// Where to interrupt a command: here and there, when SQLite has committed but not yet synced the directory
/// of its journal, and when the directories of a city are there but not yet synced.
std::set<std::size_t> interruptions(const Recording& recording) {
    const std::size_t n = recording.operations.size();
    std::set<std::size_t> positions{1, 3, n / 3, n * 2 / 3};
    for (std::size_t i = 0; i < n; ++i) {
        const Operation& operation = recording.operations[i];
        if (operation.kind == OperationKind::remove && operation.path.ends_with("-journal"))
            positions.insert(i + 1);
        if (operation.kind == OperationKind::sync && operation.path.ends_with("/objects"))
            positions.insert(i);
    }
    return positions;
}

/// A command is interrupted and repeated, and the power fails while it is repeated.
void sweep_repeated(bool is_killed) {
    const CityScenarios scenarios;
    Table table;
    for (const Scenario& scenario : scenarios.all()) {
        if (!scenario.is_repeatable) continue;
        const Recording whole = record(scenario);
        SweepReport sum;
        for (const std::size_t position : interruptions(whole)) {
            INFO(scenario.name << ", interrupted after operation " << position);
            const Recording first = killed_before(whole, position);
            ModelDisk disk = first.disk(NameModel::unordered);
            for (const Operation& operation : first.operations) disk.apply(operation);
            const DiskTree left =
                is_killed ? disk.live() : disk.after_cut({Survival::Kind::mixture, position});
            const Scenario repeated = again(scenario, left, !is_killed);
            Recording second = record(repeated);
            if (is_killed) second.earlier = std::make_shared<Recording>(first);
            const std::size_t stride = std::max<std::size_t>(1, second.operations.size() / 12);
            SweepReport report =
                sweep(second, {.stride = stride, .mixtures = 2, .at_the_end = 10}, check_of(repeated));
            CHECK(report.bad == 0);
            sum += report;
        }
        table.add(scenario.name, sum);
    }
}

/// The same command, had it never asked for what `is_dropped` says.
Recording without(Recording recording, const std::function<bool(const Operation&)>& is_dropped) {
    REQUIRE(std::erase_if(recording.operations, is_dropped) > 0);
    return recording;
}

bool is_sync_of(const Operation& operation, const std::string& part_of_path) {
    return operation.kind == OperationKind::sync && operation.path.find(part_of_path) != std::string::npos;
}

}  // namespace

TEST_CASE("a power cut in any command that writes costs nothing that was published: a sample of the cuts") {
    sweep_all({.mixtures = 1, .at_the_end = 4}, 6);
}

TEST_CASE("a power cut after any operation of any command costs nothing that was published", "[slow]") {
    sweep_all({.mixtures = 5, .at_the_end = 50}, std::size_t{1} << 30);
}

TEST_CASE("a power cut while a command is repeated after a power cut costs nothing more", "[slow]") {
    sweep_repeated(false);
}

TEST_CASE("a power cut while a command is repeated after a kill costs nothing that was published", "[slow]") {
    sweep_repeated(true);
}

TEST_CASE("the sweep finds every kind of fsync that is missing") {
    const CityScenarios scenarios;
    const Scenario& scenario = scenarios.named("incremental build");
    const Recording recording = record(scenario);
    const auto bad = [&](const Recording& r) {
        return sweep(r, {.stride = 6, .mixtures = 1, .at_the_end = 4}, check_of(scenario)).bad;
    };
    CHECK(bad(recording) == 0);
    const auto is_catalog = [](const Operation& o) { return is_sync_of(o, ".sqlite"); };
    const auto is_object = [](const Operation& o) { return is_sync_of(o, "/tmp/"); };
    const auto is_directory = [&](const Operation& o) {
        return is_sync_of(o, "") && !is_catalog(o) && !is_object(o);
    };
    CHECK(bad(without(recording, is_directory)) > 0);
    CHECK(bad(without(recording, is_object)) > 0);
    CHECK(bad(without(recording, is_catalog)) > 0);
}
