#pragma once

#include "splat/params/splat_params.hpp"

#include <string>
#include <string_view>

/// Splat parameters as TOML: a line for each field, `name = value`, fields by group as arrays of four
/// (ground, surface, linear, non-surface).
namespace citysplat::splat {

/// Changes the fields of `params` that the text names. Throws ConfigError naming `origin` and what is wrong.
void change_params(SplatParams& params, std::string_view text, std::string_view origin);

/// The lines in which `params` differs from SplatParams::of() of its method; change_params() reads them back.
std::string params_changes(const SplatParams& params);

/// All lines.
std::string params_text(const SplatParams& params);

}  // namespace citysplat::splat
