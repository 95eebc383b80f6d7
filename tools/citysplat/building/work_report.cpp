#include "citysplat/building/work_report.hpp"

#include "citysplat/context.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "mesh/city_recipe.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace citysplat::cli {

namespace {

using nlohmann::json;

constexpr unsigned kMostShards = 100'000;

/// `otherwise` also for a null name.
unsigned variable(const char* name, unsigned otherwise) {
    const char* text = name ? std::getenv(name) : nullptr;
    return text ? parse_whole<unsigned>(text).value_or(otherwise) : otherwise;
}

/// How a scheduler tells a process of an array which one it is.
struct ArrayVariables {
    const char *index, *first, *last, *count;  ///< null: there is no such variable
    unsigned base;                             ///< the first index, where no variable says it
};
constexpr ArrayVariables kSchedulers[]{
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", nullptr, 0},
    {"JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr, 0},
    {"AWS_BATCH_JOB_ARRAY_INDEX", nullptr, nullptr, "AWS_BATCH_JOB_ARRAY_SIZE", 0},
    {"SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", nullptr, 1},
    {"LSB_JOBINDEX", nullptr, "LSB_JOBINDEX_END", nullptr, 1},
    {"PBS_ARRAY_INDEX", nullptr, nullptr, nullptr, 0},
    {"PARALLEL_SEQ", nullptr, nullptr, nullptr, 1},
};

/// Only a hint of where to begin, so that an unknown number of processes does no harm.
tiling::Shard shard_of_array() {
    for (const ArrayVariables& names : kSchedulers) {
        if (!std::getenv(names.index)) continue;
        const unsigned first = variable(names.first, names.base);
        const unsigned index = std::max(variable(names.index, first), first) - first;
        const unsigned last = variable(names.last, 0);
        const unsigned n = variable(names.count, last >= first && names.last ? last - first + 1 : index + 1);
        const unsigned known = std::clamp(n, 1u, kMostShards);
        return {index % known + 1, known};
    }
    throw UsageError(
        "--shard auto: no index of a job array is in the environment (Slurm, Kubernetes, AWS Batch, SGE, "
        "LSF, PBS, GNU parallel); give K/N, or use citysplat plan and work, which need none");
}

json work_json(const tiling::WorkReport& r) {
    json object{{"plan", r.plan ? json(r.plan->hex()) : json()},
                {"tiles_planned", r.tiles_planned},
                {"tiles_left", r.tiles_left},
                {"tiles_built", r.made.tiles_built},
                {"tiles_reused", r.made.tiles_reused},
                {"tiles_empty", r.made.tiles_empty},
                {"tiles_checked", r.made.tiles_checked},
                {"chunks", r.chunks},
                {"chunks_repeated", r.chunks_repeated},
                {"peak_rss_bytes", peak_rss_bytes()}};
    json failed = json::array();
    for (const auto& failure : r.made.failures)
        failed.push_back({{"tile", failure.tile.text()}, {"message", failure.message}});
    object["tiles_failed"] = failed;
    return object;
}

std::string work_text(const tiling::WorkReport& r) {
    if (!r.plan) return "nothing is planned: there is nothing to do\n";
    return "plan " + r.plan->hex().substr(0, 12) + ": " + format_count(r.made.tiles_built) +
           " tiles built, " + format_count(r.made.tiles_reused) + " were there, " +
           format_count(r.tiles_left) + " of " + format_count(r.tiles_planned) + " left" +
           (r.tiles_left == 0 && r.made.failures.empty() ? "; citysplat publish makes the generation\n"
                                                         : "\n");
}

}  // namespace

tiling::Shard parse_shard(const std::string& text) {
    if (text == "auto") return shard_of_array();
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto k = parse_whole<unsigned>(std::string_view(text).substr(0, slash));
    const auto n = parse_whole<unsigned>(std::string_view(text).substr(std::min(slash + 1, text.size())));
    if (!k || !n || *k < 1 || *k > *n || *n > kMostShards)
        throw UsageError("--shard " + text +
                         ": expected auto, or K/N with 1 <= K <= N <= " + std::to_string(kMostShards));
    return {*k, *n};
}

std::optional<double> parse_duration(const std::string& text) {
    constexpr double kYear_s = 365 * 86400.0;
    const std::size_t unit = text.find_first_not_of("0123456789.");
    const auto value = parse_number(text.substr(0, unit));
    const std::string name = unit == std::string::npos ? "s" : text.substr(unit);
    const double scale = name == "s" ? 1 : name == "m" ? 60 : name == "h" ? 3600 : name == "d" ? 86400 : 0;
    if (!value || scale == 0 || !(*value > 0) || *value * scale > kYear_s) return std::nullopt;
    return *value * scale;
}

json plan_json(const tiling::OpenPlan& open) {
    const tiling::PlanRecord& plan = open.plan;
    double core_seconds = 0, bytes_written = 0;
    for (const tiling::PlannedTile& tile : plan.planned) {
        core_seconds += plan.costs.seconds_of(tile.points_at_most);
        bytes_written += plan.costs.bytes_of(tile.points_at_most);
    }
    std::uint64_t bytes_read = 0;
    for (const tiling::CitySource& source : plan.sources) bytes_read += source.row.object_bytes;
    // A worker that has three chunks to do makes up for its start and for the last one's wait.
    const std::size_t workers = std::max<std::size_t>(1, plan.chunk_ends.size() / 3);
    return {{"plan", open.name.hex()},
            {"created", utc_text(plan.created_s)},
            {"tiles_planned", plan.planned.size()},
            {"tiles_reused", plan.draft.tiles.size()},
            {"chunks", plan.chunk_ends.size()},
            {"core_seconds", core_seconds},
            {"bytes_read", bytes_read},
            {"bytes_written", static_cast<std::uint64_t>(bytes_written)},
            {"workers", workers}};
}

std::string plan_text(const tiling::PlanReport& report) {
    const json plan = plan_json(*report.open);
    return "plan " + report.open->name.hex().substr(0, 12) +
           (report.joined ? " of " + plan["created"].get<std::string>() + ": " : ": ") +
           format_count(plan["tiles_planned"]) + " tiles in " + format_count(plan["chunks"]) +
           " chunks, about " + format_duration(plan["core_seconds"]) + " of a core";
}

std::string made_text(std::uint64_t splats, std::uint64_t triangles) {
    if (splats == 0 && triangles == 0) return "nothing";
    if (triangles == 0) return format_count(splats) + " splats";
    return (splats > 0 ? format_count(splats) + " splats and " : "") + format_count(triangles) + " triangles";
}

tiling::WorkOptions work_options(const Context& context) {
    tiling::WorkOptions options;
    options.memory_bytes = context.memory_bytes();
    options.refuse_small_memory = true;
    options.threads = context.threads();
    return options;
}

void do_work(Context& context, const std::string& city, const tiling::WorkOptions& options) {
    const auto make_processor = [&city](const tiling::GenerationRow& generation) {
        return mesh::make_processor(mesh::city_recipe_of(generation, city));
    };
    const tiling::WorkReport report =
        tiling::work_on_plan(city, make_processor, options, context.cancel(), context.progress());
    context.result(work_json(report), work_text(report));
    for (const auto& failure : report.made.failures)
        context.warn("tile " + failure.tile.text() + " failed " + failure.message);
    if (!report.made.failures.empty())
        throw Error(ErrorKind::bad_data, format_count(report.made.failures.size()) +
                                             " tiles could not be made; what succeeded is kept");
    if (report.superseded)
        throw BusyError(city + ": the plan was closed or replaced meanwhile; run citysplat work again");
    if (report.tiles_left > 0)
        throw BusyError(city + ": the time is up and tiles are left; run citysplat work again");
}

}  // namespace citysplat::cli
