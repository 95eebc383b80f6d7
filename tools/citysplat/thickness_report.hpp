#pragma once

#include "core/number_range.hpp"
#include "tiling/build/build_options.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace CLI {
class App;
}

/// How thick surfaces are because passes disagree, for people. All take it as adjust::thickness_words() has
/// it.
namespace citysplat::cli {

/// What a generation keeps of it (GenerationRow::findings), with the generation that it was measured of.
/// Nothing when nobody measured, or when the words are damaged.
std::optional<nlohmann::json> kept_thickness(const std::string& findings, std::int64_t findings_of);

/// One line without its end.
std::string thickness_text(const nlohmann::json& thickness);
/// A line for each of the worst places.
std::string worst_text(const nlohmann::json& thickness);
/// True when enough was seen twice to say anything about a city.
bool can_judge(const nlohmann::json& thickness);
/// What a user should know of it; nothing when surfaces are thin, or nobody can say.
std::optional<std::string> thickness_warning(const nlohmann::json& thickness);

/// --most-thick, the same for all verbs that publish.
class ThicknessGate {
  public:
    void add_to(CLI::App& verb);
    /// Empty unless the user asked for one.
    tiling::Gate gate() const;
    /// Why it could not judge, if the user asked for one and it could not.
    std::optional<std::string> why_open(const std::string& findings) const;

  private:
    static constexpr NumberRange kShare_percent{0, 100, "%"};
    static constexpr double kNone = -1;
    double most_percent_ = kNone;
};

}  // namespace citysplat::cli
