#include "core/error.hpp"
#include "power/some_bank.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/care/generations.hpp"
#include "tiling/care/mirror.hpp"
#include "tiling/care/pack.hpp"
#include "tiling/toy_city.hpp"

#include <cstdio>

using namespace citysplat;

namespace {

tiling::BuildOptions options_of(const std::vector<std::string>& inputs) {
    tiling::BuildOptions options = test::toy_options({inputs.begin(), inputs.end()});
    options.threads = 1;  // the same operations in the same order, run after run
    return options;
}

void run(const std::string& verb, const std::vector<std::string>& words) {
    const CancelToken cancel;
    Progress progress;
    const std::vector<std::string> inputs(words.begin() + 1, words.end());
    if (verb == "build") {
        test::build_toy(words[0], options_of(inputs));
    } else if (verb == "gated-build") {
        tiling::BuildOptions options = options_of(inputs);
        options.gate = [](const std::string&) { return std::optional<std::string>("too thick"); };
        test::build_toy(words[0], options);
    } else if (verb == "plan") {
        test::plan_toy(words[0], options_of(inputs));
    } else if (verb == "work") {
        test::work_toy(words[0], test::impatient());
    } else if (verb == "publish") {
        tiling::publish_plan(words[0]);
    } else if (verb == "gc") {
        tiling::collect_garbage(words[0], tiling::Retention::newest(1), false);
    } else if (verb == "set-aside") {
        const auto report = tiling::verify_city(words[0], true, cancel, progress);
        tiling::set_damaged_aside(words[0], report.corrupt, cancel);
    } else if (verb == "repair") {
        tiling::repair_city(words[0], cancel);
    } else if (verb == "rollback") {
        tiling::roll_back(words[0], std::nullopt);
    } else if (verb == "move-tag") {
        tiling::set_tag(words[0], "survey", words.at(1), true);
    } else if (verb == "mirror") {
        tiling::mirror_city(words[0], words.at(1), cancel, progress);
    } else if (verb == "pack") {
        tiling::pack_city(words[0], words.at(1), cancel, progress, {.overwrite = true});
    } else if (verb == "unpack") {
        tiling::unpack_city(words[0], words.at(1), cancel, progress);
    } else if (verb == "bank") {
        power::add_objects(words[0], inputs);
    } else {
        throw UsageError("no such verb: " + verb);
    }
}

}  // namespace

/// power_toy VERB PATH…: the commands of citysplat that write, with the toy processor, to be recorded. Exit
/// codes as those of citysplat.
int main(int argc, char** argv) {
    try {
        if (argc < 3) throw UsageError("power_toy VERB PATH...");
        run(argv[1], {argv + 2, argv + argc});
        return 0;
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return static_cast<int>(e.kind());
    }
}
