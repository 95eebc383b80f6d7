#pragma once

#include "core/cancel.hpp"
#include "splat/levels/level_pyramid.hpp"
#include "view/server/city_facts.hpp"
#include "view/server/generation_diff.hpp"
#include "view/server/picker.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::view {

/// The generations of a city that can be shown. Safe to use from several threads.
class GenerationSource {
  public:
    /// A generation, kept as it is for as long as this lives.
    struct Opened {
        std::unique_ptr<const TileSource> tiles;
        CityFacts facts;
        std::unique_ptr<const Provenance> provenance{};  ///< may be missing
    };
    virtual ~GenerationSource() = default;
    /// Those that are retained now, oldest first.
    virtual std::vector<GenerationFacts> list() const = 0;
    /// Throws ConfigError when it is not retained.
    virtual Opened open(std::int64_t number) const = 0;
};

/// A generation with its levels of detail.
struct ShownGeneration {
    ShownGeneration(const ShownCity& shown, const splat::PyramidOptions& options, std::uint64_t pick_bytes);
    /// With what it was opened from, which it owns.
    ShownGeneration(std::unique_ptr<const GenerationSource::Opened> opened,
                    const splat::PyramidOptions& options, std::uint64_t pick_bytes);

    std::unique_ptr<const GenerationSource::Opened> owned;
    ShownCity city;
    splat::LevelPyramid levels;
    Picker picker;
    std::string key, json;
};

/// Two generations and the levels of what only one of them has.
struct ShownDiff {
    ShownDiff(std::shared_ptr<ShownGeneration> from, std::shared_ptr<ShownGeneration> to,
              const splat::PyramidOptions& options, const CancelToken& cancel);

    std::shared_ptr<ShownGeneration> before, after;
    GenerationDiff diff;
    splat::LevelPyramid levels_before, levels_after;
    std::string key_before, key_after, json;
};

/// What was opened last, by number; the others are closed when nobody uses them any more.
///
/// Protocol. One mutex guards the lists and is held while a generation is opened: two requests for it open it
/// once. Generations are compared one pair at a time, under a mutex of its own that is taken before the other
/// one: meanwhile everything that is open can be shown. The first generation takes no mutex. Levels are made
/// outside of both, by whoever holds the shared pointer.
class ShownSets {
  public:
    static constexpr std::size_t kMostGenerations = 3, kMostDiffs = 2;

    /// `first` is always there. `source` may be missing: then there is no other.
    ShownSets(std::shared_ptr<ShownGeneration> first, const GenerationSource* source,
              const splat::PyramidOptions& options, std::uint64_t pick_bytes);

    const std::shared_ptr<ShownGeneration>& first() const { return first_; }
    /// nullptr when it is not retained.
    std::shared_ptr<ShownGeneration> generation(std::int64_t number);
    std::shared_ptr<ShownDiff> diff(std::int64_t before, std::int64_t after, const CancelToken& cancel);
    /// Levels by the key that names their splats, and what keeps them alive; nullptr when they are not open.
    std::shared_ptr<splat::LevelPyramid> levels(std::string_view key);
    std::vector<GenerationFacts> list() const;

  private:
    std::shared_ptr<ShownGeneration> generation_locked(std::int64_t number);

    std::shared_ptr<ShownGeneration> first_;
    const GenerationSource* source_;
    splat::PyramidOptions options_;
    std::uint64_t pick_bytes_;
    std::mutex comparing_;
    std::mutex mutex_;
    std::list<std::shared_ptr<ShownGeneration>> generations_;  ///< last used first, without the first one
    std::list<std::shared_ptr<ShownDiff>> diffs_;              ///< last used first
};

}  // namespace citysplat::view
