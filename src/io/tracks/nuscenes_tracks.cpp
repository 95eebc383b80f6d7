#include "core/error.hpp"
#include "io/drive/nuscenes_rows.hpp"
#include "io/tracks/track_formats.hpp"

#include <unordered_map>

/// The annotations of a nuScenes scene: boxes of instances at the samples, two a second, in the world.
namespace citysplat::io {

namespace {

/// Times of the samples of the scene that is asked for, by token; of all when none is.
std::unordered_map<std::string, double> read_samples(const NuscenesTables& tables,
                                                     const std::string& wanted) {
    std::unordered_map<std::string, std::string> scenes;
    std::string names;
    tables.read("scene", [&](const NuscenesRow& row) {
        const std::string name = row.text("name");
        constexpr std::size_t kMostNamed = 400;
        if (names.size() < kMostNamed) names += (names.empty() ? "" : ", ") + name;
        if (wanted.empty() || name == wanted) scenes[row.text("token")] = name;
    });
    if (scenes.empty())
        throw InputError("scene.json: no scene " + wanted + (names.empty() ? "" : "; there are " + names));
    if (scenes.size() > 1)
        throw UsageError("scene.json: " + std::to_string(scenes.size()) +
                         " scenes; say which with \"scene\": " + names);
    constexpr NumberRange kTimestamp{0, 1e17, "µs"};
    std::unordered_map<std::string, double> samples;
    tables.read("sample", [&](const NuscenesRow& row) {
        if (scenes.contains(row.text("scene_token")))
            samples[row.text("token")] = row.number("timestamp", kTimestamp) * 1e-6;
    });
    return samples;
}

/// Names of categories by the token of an instance.
std::unordered_map<std::string, std::string> read_categories(const NuscenesTables& tables) {
    std::unordered_map<std::string, std::string> names, by_instance;
    tables.read("category", [&](const NuscenesRow& row) { names[row.text("token")] = row.text("name"); });
    tables.read("instance", [&](const NuscenesRow& row) {
        const auto found = names.find(row.text("category_token"));
        if (found == names.end()) row.fail("category_token", "expected a token of category.json");
        by_instance[row.text("token")] = found->second;
    });
    return by_instance;
}

}  // namespace

void read_nuscenes_annotations(const OpenTable& open, const TrackOptions& options, TrackBuilder& boxes,
                               const CancelToken& cancel) {
    boxes.set_record_kind("row");
    const NuscenesTables tables(open, cancel);
    const auto samples = read_samples(tables, options.scene);
    const auto categories = read_categories(tables);
    constexpr NumberRange kExtent_m{0, 1000, "m"};
    std::uint64_t number = 0;
    tables.read("sample_annotation", [&](const NuscenesRow& row) {
        ++number;
        const auto sample = samples.find(row.text("sample_token"));
        if (sample == samples.end()) return;
        const std::string instance = row.text("instance_token");
        const auto category = categories.find(instance);
        if (category == categories.end()) row.fail("instance_token", "expected a token of instance.json");
        const auto size = row.numbers("size", 3);
        for (const double v : size)
            if (!kExtent_m.contains(v)) row.fail("size", "expected three numbers " + kExtent_m.text());
        // Width first; the translation is the middle of the box.
        Pose pose = row.pose();
        pose.translation = pose.apply({0, 0, -size[2] / 2});
        boxes.add({instance,
                   {},
                   category->second,
                   {},
                   {size[1], size[0], size[2]},
                   {sample->second, pose},
                   number});
    });
}

void read_nuscenes_tracks(const TrackRequest& request) {
    if (!std::filesystem::exists(request.path / "scene.json"))
        throw InputError(request.path.string() +
                         ": no scene.json; \"file\" is the folder with the tables of nuScenes, such as "
                         "v1.0-mini");
    try {
        read_nuscenes_annotations(tables_in_folder(request.path), request.options, request.boxes,
                                  request.cancel);
    } catch (const InputError& e) {
        throw InputError(request.path.string() + ": " + e.what());
    } catch (const UsageError& e) {
        throw UsageError(request.path.string() + ": " + e.what());
    }
}

}  // namespace citysplat::io
