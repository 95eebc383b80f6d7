#pragma once

#include <string>
#include <vector>

namespace citysplat::cli {

class Context;

/// Does what the words after the program's name say, and returns its exit code. Throws what the verb throws,
/// and UsageError when the words make no sense.
int run_command(const std::vector<std::string>& words, Context& context);

}  // namespace citysplat::cli
