#include "citysplat/ray_report.hpp"

#include "core/bytes.hpp"
#include "core/math/math_hd.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace citysplat::cli {

namespace {

using compare::ErrorStatistics;
using compare::RayTally;
using nlohmann::json;

std::string class_name(const ClassMap& classes, std::uint16_t label) {
    const auto& known = classes.classes();
    return known.contains(label) ? known.at(label).name : "label " + std::to_string(label);
}

/// "0–5 m", "80 m and more".
std::string range_name(std::size_t bin) {
    const double begin = bin == 0 ? 0 : compare::kRangeEnds_m[bin - 1], end = compare::kRangeEnds_m[bin];
    if (std::isinf(end)) return format_number(begin) + " m and more";
    return format_number(begin) + "–" + format_number(end) + " m";
}

double degrees(double rad) { return rad * exact::kDegreesPerRad; }

void put(json& row, const std::string& prefix, const ErrorStatistics& errors, const RayTally& of) {
    for (std::size_t i = 0; i < ErrorStatistics::kLimits; ++i) {
        const auto cm = static_cast<int>(std::lround(ErrorStatistics::kLimits_m[i] * 100));
        row[prefix + "within_" + std::to_string(cm) + "cm"] = of.share(errors.within(i));
    }
    row[prefix + "median_m"] = errors.median_m();
    row[prefix + "bias_m"] = errors.bias_m();
    row[prefix + "mean_m"] = errors.mean_m();
}

json to_json(const compare::IntensityStatistics& s) {
    json object{{"pairs", s.count()},
                {"pearson", s.pearson()},
                {"spearman", s.spearman()},
                {"mean_error", s.mean_error()}};
    for (const double share : {0.05, 0.5, 0.95, 0.99}) {
        object["real_quantiles"].push_back(s.real_quantile(share));
        object["simulated_quantiles"].push_back(s.simulated_quantile(share));
    }
    return object;
}

json to_json(const RayTally& tally) {
    json row{{"returns", tally.returns},
             {"holes", tally.share(tally.holes)},
             {"front", tally.share(tally.front)},
             {"behind", tally.share(tally.behind)},
             {"extra_rays", tally.extra}};
    if (tally.dropped > 0) row["dropped"] = tally.share(tally.dropped);
    put(row, "", tally.range, tally);
    put(row, "normal_", tally.normal, tally);
    if (tally.intensity.count() > 0) row["intensity"] = to_json(tally.intensity);
    return row;
}

/// Rows whose empty rays are known whether they return or not.
json to_json_with_empty(const RayTally& tally) {
    json row = to_json(tally);
    row["empty"] = tally.empty;
    if (tally.empty > 0) {
        row["extra"] = tally.extra_share();
        row["extra_taken_away"] = tally.taken_away;
        row["agreement"] = tally.agreement();
    }
    return row;
}

std::string formatted(const char* format, double value) {
    char buffer[96];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

/// Columns padded by characters, not bytes: names have dashes.
std::string padded(const std::string& text, std::size_t width) {
    std::size_t characters = 0;
    for (const char c : text) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return text + std::string(characters < width ? width - characters : 0, ' ');
}

std::string header(const char* what) {
    char buffer[256];
    std::snprintf(buffer, sizeof buffer, "%11s %6s %6s %6s %6s %9s %9s %9s %6s %6s %6s %7s %7s %9s %6s\n",
                  "returns", "<5 cm", "<10", "<20", "<50", "median", "bias", "mean", "holes", "front",
                  "behind", "n <5 cm", "n <20", "n median", "extra");
    return padded(what, 20) + buffer;
}

std::string row(const std::string& name, const RayTally& t, bool with_extra) {
    const auto percent = [&](std::uint64_t n) { return 100 * t.share(n); };
    const std::string extra =
        with_extra && t.empty > 0 ? formatted("%.1f", 100 * t.extra_share()) : std::string("-");
    char buffer[256];
    std::snprintf(buffer, sizeof buffer,
                  "%11s %6.1f %6.1f %6.1f %6.1f %6.1f cm %6.1f cm %6.0f cm %6.1f %6.1f %6.1f %7.1f %7.1f "
                  "%6.1f cm %6s\n",
                  format_count(t.returns).c_str(), percent(t.range.within(0)), percent(t.range.within(1)),
                  percent(t.range.within(2)), percent(t.range.within(3)), 100 * t.range.median_m(),
                  100 * t.range.bias_m(), 100 * t.range.mean_m(), percent(t.holes), percent(t.front),
                  percent(t.behind), percent(t.normal.within(0)), percent(t.normal.within(2)),
                  100 * t.normal.median_m(), extra.c_str());
    return padded(name, 20) + buffer;
}

}  // namespace

json model_report_json(const RayTally& with_model) {
    json row = to_json_with_empty(with_model);
    row["extra_taken_away_share"] = with_model.taken_away_share();
    return row;
}

std::string model_report_text(const RayTally& with_model, const std::string& what) {
    const double empty = with_model.empty == 0 ? 0 : 1 - with_model.extra_share();
    return "with " + what + formatted(" %.1f %% of the rays that did not come back stay empty", 100 * empty) +
           formatted(" (of those that meet the city: %.1f %%)", 100 * with_model.taken_away_share()) +
           formatted("; it loses %.2f %% of the real returns\n", 100 * with_model.share(with_model.dropped));
}

std::vector<std::string> ray_warnings(std::uint64_t points_without_sensor, bool beams_missing) {
    std::vector<std::string> warnings;
    if (points_without_sensor > 0)
        warnings.push_back(format_count(points_without_sensor) +
                           " points have no sensor position and are left out; does --trajectory cover them?");
    if (beams_missing)
        warnings.push_back(
            "the beams of the sensor were not found: nothing is said by beam, nor about rays that did not "
            "come "
            "back");
    return warnings;
}

json ray_report_json(const compare::RayComparison& comparison, const sim::BeamTable& beams,
                     const ClassMap& classes) {
    json object = to_json_with_empty(comparison.all());
    object["scans"] = comparison.scans();
    object["own_car_returns"] = comparison.own_car();
    if (comparison.own_car() > 0) object["with_own_car"] = to_json_with_empty(comparison.with_own_car());
    object["ranges"] = json::array();
    for (std::size_t bin = 0; bin < comparison.ranges().size(); ++bin) {
        json of = to_json(comparison.ranges()[bin]);
        of["from_m"] = bin == 0 ? 0 : compare::kRangeEnds_m[bin - 1];
        if (!std::isinf(compare::kRangeEnds_m[bin])) of["to_m"] = compare::kRangeEnds_m[bin];
        object["ranges"].push_back(std::move(of));
    }
    object["classes"] = json::object();
    for (const auto& [label, tally] : comparison.classes())
        object["classes"][class_name(classes, label)] = to_json(tally);
    object["beams"] = json::array();
    for (std::size_t b = 0; b < comparison.beams().size(); ++b) {
        json of = to_json_with_empty(comparison.beams()[b]);
        of["elevation_deg"] = degrees(beams.elevation_rad[b]);
        object["beams"].push_back(std::move(of));
    }
    return object;
}

std::string ray_report_text(const compare::RayComparison& comparison, const sim::BeamTable& beams,
                            const ClassMap& classes) {
    const RayTally& all = comparison.all();
    std::string text = header("real returns, in %") + row("all", all, true);
    if (comparison.own_car() > 0) text += row("with the own car", comparison.with_own_car(), true);
    for (std::size_t bin = 0; bin < comparison.ranges().size(); ++bin)
        if (const RayTally& of = comparison.ranges()[bin]; of.returns > 0)
            text += row(range_name(bin), of, false);
    if (comparison.classes().size() > 1) {
        text += "\n" + header("class");
        for (const auto& [label, of] : comparison.classes())
            if (of.returns > 0) text += row(class_name(classes, label), of, false);
    }
    if (!comparison.beams().empty()) text += "\n" + header("beam, elevation");
    for (std::size_t b = 0; b < comparison.beams().size(); ++b)
        text += row(std::to_string(b) + formatted(", %.2f°", degrees(beams.elevation_rad[b])),
                    comparison.beams()[b], true);
    if (const auto& i = all.intensity; i.count() > 0) {
        text += formatted("\nintensity where ranges agree within 10 cm: Pearson %.3f", i.pearson()) +
                formatted(", Spearman %.3f", i.spearman()) + formatted(", mean error %.3f", i.mean_error());
        text += "; quantiles 5/50/95/99 % real";
        for (const double share : {0.05, 0.5, 0.95, 0.99}) text += formatted(" %.3f", i.real_quantile(share));
        text += ", simulated";
        for (const double share : {0.05, 0.5, 0.95, 0.99})
            text += formatted(" %.3f", i.simulated_quantile(share));
        text += "\n";
    }
    if (all.dropped + all.taken_away > 0) text += model_report_text(all, "the model of the sensor");
    if (comparison.own_car() > 0)
        text +=
            format_count(comparison.own_car()) +
            " returns are of the recording car, which is no part of the city: they count as rays that did "
            "not come back; --no-own-car judges them\n";
    if (all.empty > 0)
        text += format_count(all.empty) + " rays did not come back; " + format_count(all.extra) +
                " of them return in simulation" +
                formatted(". Return or none agrees on %.1f %% of all rays\n", 100 * all.agreement());
    return text;
}

}  // namespace citysplat::cli
