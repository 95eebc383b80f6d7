#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace citysplat::cli {

class Context;

/// Writes the splats of a generation (nothing: the latest) as an EPT, or brings one up to date.
void export_ept(Context& context, const std::string& city, std::optional<std::int64_t> generation,
                const std::string& out);

}  // namespace citysplat::cli
