#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// --generation, the same for all verbs that read a city.
class GenerationFlag {
  public:
    void add_to(CLI::App& verb);
    /// Which generation of the city is meant; nothing: the latest. Throws UsageError when there is none.
    std::optional<std::int64_t> number(const std::string& city) const;

  private:
    std::string name_;
};

}  // namespace citysplat::cli
