#pragma once

#include "model/tile_grid.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// --product, for verbs that read a city of splats or of a mesh.
class ProductFlag {
  public:
    void add_to(CLI::App& verb);
    /// What of the city is meant: what the flag says, else its splats, else its mesh.
    ProductKind kind(const std::string& city, std::optional<std::int64_t> generation) const;

  private:
    std::string name_;
};

}  // namespace citysplat::cli
