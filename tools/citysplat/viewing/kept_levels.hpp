#pragma once

#include "citysplat/context.hpp"
#include "splat/levels/level_pyramid.hpp"
#include "splat/levels/level_store.hpp"
#include "view/server/city_facts.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// Where levels of detail are kept for the next time.
struct LevelFlags {
    std::string directory, most_bytes = "2G";

    void add_to(CLI::App& verb);
    /// A directory of the user's, never the city. Nothing when nothing is to be kept.
    std::optional<splat::LevelStore> store() const;
};

struct MadeLevels {
    std::string key;
    std::uint64_t top_discs = 0, columns_read = 0, kept_bytes = 0;
    std::size_t missing = 0;  ///< tiles that cannot be read
};

/// Makes all levels above cells and keeps them, so that the next first picture reads no splat. Requires a
/// store.
MadeLevels make_levels(const view::ShownCity& city, splat::PyramidOptions options, Context& context);

}  // namespace citysplat::cli
