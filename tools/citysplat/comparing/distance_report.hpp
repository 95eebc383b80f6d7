#pragma once

#include "citysplat/truth_metrics.hpp"
#include "compare/compare.hpp"
#include "model/class_map.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>

namespace citysplat::cli {

/// The report, gathered measure by measure; classes by name.
class DistanceReport {
  public:
    explicit DistanceReport(const ClassMap& classes) : classes_(classes) {}

    void distances(const std::string& prefix, const compare::DistancesByClass& d) {
        json_["points"] = d.all.count();
        put(json_, prefix, d.all);
        for (const auto& [label, statistics] : d.classes) {
            nlohmann::json& of = of_class(label);
            of["points"] = statistics.count();
            put(of, prefix, statistics);
        }
    }
    void ghosts(const compare::DistancesByClass& d) {
        json_["ghosts"] = d.all.share_above(kGhost_m);
        for (const auto& [label, statistics] : d.classes)
            of_class(label)["ghosts"] = statistics.share_above(kGhost_m);
    }
    void coverage(const CoverageByClass& c) {
        put(json_, c.all);
        for (const auto& [label, part] : c.classes) put(of_class(label), part);
    }
    void tile(const std::string& name, const compare::DistanceStatistics& d) {
        nlohmann::json& of = json_["tiles"][name];
        of["points"] = d.count();
        put(of, "c2c", d);
    }
    const nlohmann::json& json() const { return json_; }

    std::string text() const {
        std::string out = line("class", "points", "C2C mean", "C2C p95", "truth mean", "truth p95", "ghosts",
                               "coverage", "met first", "in truth");
        out += row("all", json_);
        for (const auto& [name, of] : json_["classes"].items()) out += row(name, of);
        if (json_.contains("tiles"))
            for (const auto& [name, of] : json_["tiles"].items()) out += row("tile " + name, of);
        return out;
    }

  private:
    static void put(nlohmann::json& of, const std::string& prefix, const compare::DistanceStatistics& s) {
        of[prefix + "_mean_m"] = s.mean_m();
        of[prefix + "_p95_m"] = s.quantile_m(0.95);
        of[prefix + "_max_m"] = s.max_m();
    }
    static void put(nlohmann::json& of, const Coverage& c) {
        of["coverage"] = c.share(c.covered);
        of["coverage_rays"] = c.seen;
        of["seen"] = c.rays == 0 ? 0 : static_cast<double>(c.seen) / static_cast<double>(c.rays);
        of["holes"] = 1 - c.share(c.covered);
        of["hidden"] = c.share(c.hidden);
        of["met_first"] = c.share(c.met);
        of["met_first_in_truth"] = c.share(c.met_in_truth);
    }
    nlohmann::json& of_class(std::uint16_t label) {
        const auto& known = classes_.classes();
        const std::string name =
            known.contains(label) ? known.at(label).name : "label " + std::to_string(label);
        return json_["classes"][name];
    }
    template <class... T>
    static std::string line(T... fields) {
        char buffer[256];
        std::snprintf(buffer, sizeof buffer, "%-18s %12s %10s %10s %11s %10s %9s %9s %9s %9s\n", fields...);
        return buffer;
    }
    static std::string row(const std::string& name, const nlohmann::json& of) {
        const auto number = [&of](const char* key, const char* format, double factor) {
            if (!of.contains(key)) return std::string("-");
            char buffer[32];
            std::snprintf(buffer, sizeof buffer, format, of[key].get<double>() * factor);
            return std::string(buffer);
        };
        return line(name.c_str(), number("points", "%.0f", 1).c_str(),
                    number("c2c_mean_m", "%.2f cm", 100).c_str(), number("c2c_p95_m", "%.2f cm", 100).c_str(),
                    number("truth_mean_m", "%.2f cm", 100).c_str(),
                    number("truth_p95_m", "%.2f cm", 100).c_str(), number("ghosts", "%.3f %%", 100).c_str(),
                    number("coverage", "%.2f %%", 100).c_str(), number("met_first", "%.2f %%", 100).c_str(),
                    number("met_first_in_truth", "%.2f %%", 100).c_str());
    }

    const ClassMap& classes_;
    nlohmann::json json_ = {{"classes", nlohmann::json::object()}};
};

}  // namespace citysplat::cli
