#include "tiling/build/gate.hpp"

#include "core/bytes.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

namespace citysplat::tiling {

namespace {

std::string percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
    return text.data();
}

double share_of(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

TileChanges changes_between(std::span<const ProductRow> before, std::span<const ProductRow> after) {
    TileChanges changes;
    auto old = before.begin();
    for (const ProductRow& tile : after) {
        for (; old != before.end() && old->tile < tile.tile; ++old) ++changes.removed;
        if (old == before.end() || tile.tile < old->tile) {
            ++changes.added;
            continue;
        }
        ++(old->digest == tile.digest ? changes.same : changes.changed);
        ++old;
    }
    changes.removed += static_cast<std::uint64_t>(before.end() - old);
    return changes;
}

CandidateGate changed_tiles_gate(double most_share) {
    return [most_share](const Candidate& c) -> GateResult {
        const TileChanges changes = changes_between(c.tiles_before, c.tiles);
        const std::uint64_t all = std::max(c.tiles_before.size(), c.tiles.size());
        const double share = share_of(changes.differing(), all);
        return {"changed_tiles", share, most_share,
                percent(share) + " of the tiles changed (" + format_count(changes.added) + " new, " +
                    format_count(changes.changed) + " changed, " + format_count(changes.removed) +
                    " gone, of " + format_count(all) + "); " + percent(most_share) + " are allowed"};
    };
}

CandidateGate splat_change_gate(double most_share) {
    return [most_share](const Candidate& c) -> GateResult {
        const std::uint64_t was = c.before.splats, is = c.next.splats;
        const double share = share_of(std::max(was, is) - std::min(was, is), std::max<std::uint64_t>(was, 1));
        return {"splat_change", share, most_share,
                format_count(is) + " splats instead of " + format_count(was) + " (" + (is < was ? "-" : "+") +
                    percent(share) + "); " + percent(most_share) + " more or less are allowed"};
    };
}

CandidateGate failed_tiles_gate(std::uint64_t most) {
    return [most](const Candidate& c) -> GateResult {
        return {"failed_tiles", static_cast<double>(c.tiles_failed), static_cast<double>(most),
                format_count(c.tiles_failed) + " tiles could not be made; " + format_count(most) +
                    " are allowed"};
    };
}

std::vector<CitySource> sources_added(const std::vector<CitySource>& before,
                                      const std::vector<CitySource>& sources) {
    std::set<Hash128> known;
    for (const CitySource& source : before) known.insert(source.row.identity);
    std::vector<CitySource> added;
    for (const CitySource& source : sources)
        if (!known.contains(source.row.identity)) added.push_back(source);
    return added;
}

}  // namespace citysplat::tiling
