#pragma once

namespace CLI {
class App;
}

namespace citysplat::cli {

class Context;

/// As the functions of verbs.hpp.
void add_nightly(CLI::App& app, Context& context);

}  // namespace citysplat::cli
