#include "citysplat/run_command.hpp"

#include "citysplat/context.hpp"
#include "citysplat/manual/version.hpp"
#include "citysplat/night/nightly.hpp"
#include "citysplat/verbs.hpp"
#include "core/error.hpp"

#include <CLI/CLI.hpp>
#include <tbb/global_control.h>

#include <optional>

namespace citysplat::cli {

namespace {

/// An unknown verb is named; CLI11 would only say that one is required.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    const bool unknown_verb = app.get_subcommands().empty() && !unknown.empty() && unknown[0][0] != '-';
    return unknown_verb ? "there is no verb \"" + unknown[0] + "\"" : error.what();
}

}  // namespace

int run_command(const std::vector<std::string>& words, Context& context) {
    CLI::App app(
        "citysplat: kilometres of mobile-mapping LiDAR to a splat model of the city, and simulated LiDARs "
        "through it");
    app.name("citysplat");
    app.set_version_flag("--version", [&context] { return version_text(context.json()); });
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(
        "Exit codes: 0 ok, 2 usage, 65 bad data, 69 backend unavailable, 74 I/O or disk full,\n"
        "            75 busy, 76 held back by a gate, 78 configuration, 130 interrupted.\n"
        "Start with: citysplat synth demo/drive --length 100");

    context.add_common_options(app);
    add_synth(app, context);
    add_info(app, context);
    add_adjust(app, context);
    add_build(app, context);
    add_status(app, context);
    add_verify(app, context);
    add_gc(app, context);
    add_tag(app, context);
    add_diff(app, context);
    add_mirror(app, context);
    add_rollback(app, context);
    add_repair(app, context);
    add_plan(app, context);
    add_work(app, context);
    add_publish(app, context);
    add_nightly(app, context);
    add_pack(app, context);
    add_unpack(app, context);
    add_sensors(app, context);
    add_simulate(app, context);
    add_clearance(app, context);
    add_learn_sensor(app, context);
    add_calibrate(app, context);
    add_bank(app, context);
    add_snapshots(app, context);
    add_compare(app, context);
    add_render(app, context);
    add_view(app, context);
    add_export(app, context);
    add_selftest(app, context);
    add_completion(app, context);
    add_manual(app, context);
    std::optional<tbb::global_control> thread_limit;
    app.parse_complete_callback([&] {
        context.resolve();
        thread_limit.emplace(tbb::global_control::max_allowed_parallelism,
                             static_cast<std::size_t>(context.threads()));
    });

    try {
        // CLI11 takes them from the back.
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
        context.finish();
        return 0;
    } catch (const CLI::Success& e) {
        return app.exit(e);  // --help, --version
    } catch (const CLI::ParseError& e) {
        throw UsageError(what_is_wrong(app, e) + " (see citysplat --help)");
    }
}

}  // namespace citysplat::cli
