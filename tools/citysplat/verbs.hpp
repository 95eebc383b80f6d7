#pragma once

namespace CLI {
class App;
}

/// One function per verb, in verbs/NAME.cpp: registers the verb's flags, help and example, and what it does.
/// A verb does its work in the CLI11 callback and reports errors by exception; main maps them to exit codes.
namespace citysplat::cli {

class Context;

void add_plan(CLI::App& app, Context& context);
void add_work(CLI::App& app, Context& context);
void add_publish(CLI::App& app, Context& context);
void add_pack(CLI::App& app, Context& context);
void add_unpack(CLI::App& app, Context& context);
void add_repair(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_mirror(CLI::App& app, Context& context);
void add_tag(CLI::App& app, Context& context);
void add_rollback(CLI::App& app, Context& context);
void add_gc(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_adjust(CLI::App& app, Context& context);
void add_build(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_sensors(CLI::App& app, Context& context);
void add_selftest(CLI::App& app, Context& context);
void add_synth(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_render(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_clearance(CLI::App& app, Context& context);
void add_learn_sensor(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_bank(CLI::App& app, Context& context);
void add_view(CLI::App& app, Context& context);
void add_snapshots(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_manual(CLI::App& app, Context& context);

}  // namespace citysplat::cli
