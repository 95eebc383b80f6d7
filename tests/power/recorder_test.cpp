#include "power/model_disk.hpp"
#include "power/sweep.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

using namespace citysplat;
using namespace citysplat::power;

namespace {

struct Recorded {
    test::TempDir dir{test::memory_directory()};
    Recording recording;

    explicit Recorded(const std::string& way) {
        std::ofstream(dir / "before") << "was there before\n";
        recording = record(dir.path(), {CITYSPLAT_FILE_CALLS, way, dir.path().string()});
    }
    std::string replay() const {
        ModelDisk disk(recording.before, NameModel::unordered);
        for (const Operation& operation : recording.operations) disk.apply(operation);
        return difference(recording.after.tree(), disk.live());
    }
};

}  // namespace

TEST_CASE("playing back everything that was recorded gives the directory that the program left") {
    const Recorded recorded("known");
    CHECK(recorded.replay() == "");
    CHECK(recorded.recording.after.tree().size() == 12);
    const auto& operations = recorded.recording.operations;
    const auto count = [&](OperationKind kind) {
        return std::count_if(operations.begin(), operations.end(),
                             [kind](const Operation& operation) { return operation.kind == kind; });
    };
    CHECK(count(OperationKind::sync) == 3);
    CHECK(operations.back().kind == OperationKind::exit);
}

TEST_CASE("a change that the recorder cannot see is noticed when its log is played back") {
    CHECK(Recorded("stdio").replay() == "unseen is not there");
    CHECK_THROWS_WITH(Recorded("stream").replay(), Catch::Contains("nobody made this file"));
    CHECK_THROWS_WITH(Recorded("mmap").replay(), Catch::Contains("mmap"));
}

TEST_CASE("a program that fails is no recording") {
    CHECK_THROWS_WITH(Recorded("fail"), Catch::Contains("3"));
}
