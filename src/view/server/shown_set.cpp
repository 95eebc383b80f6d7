#include "view/server/shown_set.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "view/server/city_json.hpp"

namespace citysplat::view {

namespace {

splat::PyramidOptions with_key(splat::PyramidOptions options, const ShownCity& city) {
    options.store_key = city.levels_key();
    return options;
}

/// Differences are looked at once.
splat::PyramidOptions in_memory(splat::PyramidOptions options) {
    options.store = nullptr;
    return options;
}

std::string diff_key(const ShownCity& of, const ShownCity& without) {
    return Hasher()
        .text("levels of a difference")
        .number(splat::kLevelsVersion)
        .text(of.facts.digest)
        .text(without.facts.digest)
        .finish()
        .hex();
}

}  // namespace

ShownGeneration::ShownGeneration(const ShownCity& shown, const splat::PyramidOptions& options,
                                 std::uint64_t pick_bytes)
    : city(shown),
      levels(shown.tiles, with_key(options, shown)),
      picker(shown.tiles, pick_bytes),
      key(shown.levels_key()),
      json(city_json(shown, levels)) {}

ShownGeneration::ShownGeneration(std::unique_ptr<const GenerationSource::Opened> opened,
                                 const splat::PyramidOptions& options, std::uint64_t pick_bytes)
    : owned(std::move(opened)),
      city{*owned->tiles, owned->facts, owned->provenance.get()},
      levels(city.tiles, with_key(options, city)),
      picker(city.tiles, pick_bytes),
      key(city.levels_key()),
      json(city_json(city, levels)) {}

ShownDiff::ShownDiff(std::shared_ptr<ShownGeneration> from, std::shared_ptr<ShownGeneration> to,
                     const splat::PyramidOptions& options, const CancelToken& cancel)
    : before(std::move(from)),
      after(std::move(to)),
      diff(before->city, after->city),
      levels_before(diff.only_before, in_memory(options)),
      levels_after(diff.only_after, in_memory(options)),
      key_before(diff_key(before->city, after->city)),
      key_after(diff_key(after->city, before->city)) {
    json = diff_json(*this, diff.changes(cancel));
}

ShownSets::ShownSets(std::shared_ptr<ShownGeneration> first, const GenerationSource* source,
                     const splat::PyramidOptions& options, std::uint64_t pick_bytes)
    : first_(std::move(first)), source_(source), options_(options), pick_bytes_(pick_bytes) {}

std::shared_ptr<ShownGeneration> ShownSets::generation(std::int64_t number) {
    if (number == first_->city.facts.generation) return first_;
    const std::lock_guard lock(mutex_);
    return generation_locked(number);
}

std::shared_ptr<ShownGeneration> ShownSets::generation_locked(std::int64_t number) {
    if (number == first_->city.facts.generation) return first_;
    for (auto at = generations_.begin(); at != generations_.end(); ++at)
        if ((*at)->city.facts.generation == number) {
            generations_.splice(generations_.begin(), generations_, at);
            return generations_.front();
        }
    if (!source_) return nullptr;
    try {
        auto opened = std::make_unique<const GenerationSource::Opened>(source_->open(number));
        generations_.push_front(std::make_shared<ShownGeneration>(std::move(opened), options_, pick_bytes_));
    } catch (const ConfigError&) {
        return nullptr;
    }
    while (generations_.size() > kMostGenerations - 1) generations_.pop_back();
    return generations_.front();
}

std::shared_ptr<ShownDiff> ShownSets::diff(std::int64_t before, std::int64_t after,
                                           const CancelToken& cancel) {
    const std::lock_guard one_at_a_time(comparing_);
    std::shared_ptr<ShownGeneration> from, to;
    {
        const std::lock_guard lock(mutex_);
        for (auto at = diffs_.begin(); at != diffs_.end(); ++at)
            if ((*at)->before->city.facts.generation == before &&
                (*at)->after->city.facts.generation == after) {
                diffs_.splice(diffs_.begin(), diffs_, at);
                return diffs_.front();
            }
        from = generation_locked(before);
        to = generation_locked(after);
    }
    if (!from || !to) return nullptr;
    auto made = std::make_shared<ShownDiff>(from, to, options_, cancel);
    const std::lock_guard lock(mutex_);
    diffs_.push_front(std::move(made));
    while (diffs_.size() > kMostDiffs) diffs_.pop_back();
    return diffs_.front();
}

std::shared_ptr<splat::LevelPyramid> ShownSets::levels(std::string_view key) {
    if (key == first_->key) return {first_, &first_->levels};
    const std::lock_guard lock(mutex_);
    for (const auto& one : generations_)
        if (one->key == key) return {one, &one->levels};
    for (const auto& one : diffs_) {
        if (one->key_before == key) return {one, &one->levels_before};
        if (one->key_after == key) return {one, &one->levels_after};
    }
    return nullptr;
}

std::vector<GenerationFacts> ShownSets::list() const {
    return source_ ? source_->list() : first_->city.facts.history;
}

}  // namespace citysplat::view
