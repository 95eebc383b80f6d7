#pragma once

#include "model/tile_grid.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// --product, for verbs that read one product of a city.
class ProductFlag {
  public:
    void add_to(CLI::App& verb);
    /// What of the city is meant: what the flag says, else the first that it has.
    ProductKind kind(const std::string& city, std::optional<std::int64_t> generation) const;

  private:
    std::string name_;
};

}  // namespace citysplat::cli
