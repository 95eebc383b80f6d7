#pragma once

#include "tiling/care/retention.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// Which generations stay: --keep-last and the others.
class KeepFlags {
  public:
    void add_to(CLI::App& verb);
    /// Without any flag the newest three.
    tiling::Retention retention() const;

  private:
    tiling::Retention counts_;
    std::string within_;
};

}  // namespace citysplat::cli
