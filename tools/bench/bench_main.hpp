#pragma once

#include "bench/bench_report.hpp"
#include "core/number_range.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace citysplat::bench {

/// The command line of a bench. A name in capitals is an argument by position, one with dashes a flag; the
/// value a variable has is the default that --help shows.
class Flags {
  public:
    explicit Flags(CLI::App& app) : app_(app) {}

    void required(const std::string& name, std::string& value, const std::string& what);
    void required(const std::string& name, std::vector<std::string>& values, const std::string& what);
    void text(const std::string& name, std::string& value, const std::string& what);
    void texts(const std::string& name, std::vector<std::string>& values, const std::string& what);
    void one_of(const std::string& name, std::string& value, const std::vector<std::string>& words,
                const std::string& what);
    /// A whole number from 1 to `most`.
    void count(const std::string& name, std::uint64_t& value, std::uint64_t most, const std::string& what);
    void number(const std::string& name, double& value, const NumberRange& range, const std::string& what);
    void flag(const std::string& name, bool& value, const std::string& what);

  private:
    CLI::App& app_;
};

/// A bench: what it measures and against what, its command line, its work.
struct Program {
    std::string name;
    std::string about;
    std::function<void(Flags&)> flags;
    std::function<void(Report&)> run;
};

/// Runs a bench as `main` does: --help, errors as messages on stderr with the exit codes of core/error.hpp.
int run_bench(const Program& program, int argc, char** argv);

}  // namespace citysplat::bench
