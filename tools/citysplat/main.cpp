#include "citysplat/context.hpp"
#include "citysplat/manual/version.hpp"
#include "citysplat/verbs.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

#include <CLI/CLI.hpp>
#include <tbb/global_control.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using namespace citysplat;

CancelToken* g_cancel = nullptr;

/// The first signal asks politely; the second does not wait.
void on_signal(int) {
    if (g_cancel->requested()) ::_exit(static_cast<int>(ErrorKind::interrupted));
    g_cancel->request();
}

void catch_interrupts(CancelToken& cancel) {
    g_cancel = &cancel;
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // A closed pipe and a file beyond the limit of the shell are failed writes, which we report.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

int fail(const cli::Context& context, ErrorKind kind, const std::string& message) {
    context.fail(name_of(kind), static_cast<int>(kind), message);
    return static_cast<int>(kind);
}

std::string what_failed(const std::filesystem::filesystem_error& e) {
    if (e.path1().empty()) return e.code().message() + " (" + e.what() + ")";
    return "cannot use " + e.path1().string() + ": " + e.code().message();
}

/// An unknown verb is named; CLI11 would only say that one is required.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    const bool unknown_verb = app.get_subcommands().empty() && !unknown.empty() && unknown[0][0] != '-';
    return unknown_verb ? "there is no verb \"" + unknown[0] + "\"" : error.what();
}

int run(int argc, char** argv, cli::Context& context) {
    CLI::App app(
        "citysplat: kilometres of mobile-mapping LiDAR to a splat model of the city, and simulated LiDARs "
        "through it");
    app.name("citysplat");
    app.set_version_flag("--version", [&context] { return cli::version_text(context.json()); });
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(
        "Exit codes: 0 ok, 2 usage, 65 bad data, 69 backend unavailable, 74 I/O or disk full,\n"
        "            75 busy, 78 configuration, 130 interrupted.\n"
        "Start with: citysplat synth demo/drive --length 100");

    context.add_common_options(app);
    cli::add_synth(app, context);
    cli::add_info(app, context);
    cli::add_adjust(app, context);
    cli::add_build(app, context);
    cli::add_status(app, context);
    cli::add_verify(app, context);
    cli::add_gc(app, context);
    cli::add_rollback(app, context);
    cli::add_repair(app, context);
    cli::add_plan(app, context);
    cli::add_work(app, context);
    cli::add_publish(app, context);
    cli::add_pack(app, context);
    cli::add_unpack(app, context);
    cli::add_sensors(app, context);
    cli::add_simulate(app, context);
    cli::add_clearance(app, context);
    cli::add_learn_sensor(app, context);
    cli::add_calibrate(app, context);
    cli::add_bank(app, context);
    cli::add_snapshots(app, context);
    cli::add_compare(app, context);
    cli::add_render(app, context);
    cli::add_view(app, context);
    cli::add_export(app, context);
    cli::add_selftest(app, context);
    cli::add_completion(app, context);
    cli::add_manual(app, context);
    catch_interrupts(context.cancel());
    std::optional<tbb::global_control> thread_limit;
    app.parse_complete_callback([&] {
        context.resolve();
        thread_limit.emplace(tbb::global_control::max_allowed_parallelism,
                             static_cast<std::size_t>(context.threads()));
    });

    try {
        app.parse(argc, argv);
        context.finish();
        return 0;
    } catch (const CLI::Success& e) {
        return app.exit(e);  // --help, --version
    } catch (const CLI::ParseError& e) {
        throw UsageError(what_is_wrong(app, e) + " (see citysplat --help)");
    }
}

}  // namespace

int main(int argc, char** argv) {
    cli::Context context;
    if (std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; }))
        context.expect_json();
    try {
        raise_descriptor_limit();
        return run(argc, argv, context);
    } catch (const Error& e) {
        return fail(context, e.kind(), e.what());
    } catch (const std::filesystem::filesystem_error& e) {
        return fail(context, ErrorKind::io, what_failed(e));
    } catch (const std::bad_alloc&) {
        return fail(context, ErrorKind::io, "out of memory; lower --memory or --threads");
    } catch (const std::exception& e) {
        return fail(context, ErrorKind::io, std::string("internal error: ") + e.what());
    }
}
