#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"
#include "sim/sensor/sensor.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace citysplat::cli {

namespace {

nlohmann::json describe(const sim::Sensor& sensor) {
    return {{"id", sensor.id},
            {"name", sensor.name},
            {"rays_per_scan", sensor.rays_per_scan()},
            {"scan_hz", sensor.scan_hz},
            {"min_range_m", sensor.min_range_m},
            {"max_range_m", sensor.max_range_m},
            {"repeats", sensor.repeats()},
            {"source", sensor.source}};
}

void list(Context& context) {
    nlohmann::json all = nlohmann::json::array();
    std::string text;
    for (const std::string& name : sim::Sensor::builtin_names()) {
        const sim::Sensor sensor = sim::Sensor::load(name);
        all.push_back(describe(sensor));
        char line[256];
        std::snprintf(line, sizeof line, "%-14s %-24s %8s rays/scan %5.0f Hz %6.1f m\n", name.c_str(),
                      sensor.name.c_str(), format_count(sensor.rays_per_scan()).c_str(), sensor.scan_hz,
                      sensor.max_range_m);
        text += line;
    }
    context.result({{"list", all}}, text);
}

}  // namespace

void add_sensors(CLI::App& app, Context& context) {
    auto name = std::make_shared<std::string>();
    CLI::App& verb = *app.add_subcommand("sensors", "the catalogue of sensors");
    verb.fallthrough();
    verb.add_option("name", *name, "print this sensor's file: a start for your own");
    verb.footer("Example: citysplat sensors vlp-16 > mine.toml; citysplat simulate … --sensor mine.toml");
    verb.callback([name, &context] {
        if (name->empty()) return list(context);
        nlohmann::json one = describe(sim::Sensor::load(*name));
        const std::string text = sim::Sensor::builtin_text(*name);
        one["toml"] = text;
        context.result({{"list", {one}}}, text);
    });
}

}  // namespace citysplat::cli
