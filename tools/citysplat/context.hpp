#pragma once

#include "core/cancel.hpp"
#include "core/progress.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// What every verb gets: the common flags, cancellation, and the way to the user. Human text goes to stderr,
/// results to stdout.
class Context {
  public:
    /// Registers --json, --progress, --threads, --memory, -q and -v on the program.
    void add_common_options(CLI::App& app);
    /// After parsing: checks the flags. Throws UsageError.
    void resolve();

    bool json() const { return json_; }
    bool verbose() const { return verbosity_ > 0; }
    int threads() const { return threads_; }
    std::uint64_t memory_bytes() const { return memory_bytes_; }
    const CancelToken& cancel() const { return cancel_; }
    CancelToken& cancel() { return cancel_; }
    Progress& progress() { return progress_; }

    /// A line for people, on stderr. Silent with -q.
    void say(const std::string& line) const;
    /// Only with -v.
    void detail(const std::string& line) const;
    /// Shown even with -q.
    void warn(const std::string& line) const;
    /// The outcome of the verb: with --json one object on stdout, otherwise `text` on stdout.
    void result(const nlohmann::json& object, const std::string& text) const;

  private:
    bool json_ = false;
    bool quiet_ = false;
    int verbosity_ = 0;
    int threads_ = 0;
    std::string progress_style_ = "auto";
    std::string memory_ = "4G";
    std::uint64_t memory_bytes_ = 0;
    CancelToken cancel_;
    Progress progress_;
};

/// Seconds since construction; each lap() starts anew.
class Stopwatch {
  public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }
    double lap() {
        const double s = seconds();
        begin_ = std::chrono::steady_clock::now();
        return s;
    }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace citysplat::cli
