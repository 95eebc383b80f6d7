#pragma once

#include "core/cancel.hpp"
#include "core/listening/progress_listener.hpp"
#include "core/progress.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace citysplat::cli {

/// What every verb gets: the common flags, cancellation, and the way to the user. Human text goes to stderr,
/// results to stdout. What is not UTF-8 (names of files, quotes from them) is escaped on the way out, here.
class Context {
  public:
    Context();
    ~Context();

    /// Before parsing: failures are to be printed as JSON, too.
    void expect_json() { json_ = true; }
    /// Before parsing: the command runs inside another program. Nothing is printed: warnings and notes of
    /// progress go to these (either may be empty), the result is kept for take_result().
    struct Embedding {
        std::function<void(const std::string&)> warn;
        std::function<void(const ProgressNote&)> progress;  ///< see ProgressListener
    };
    void embed(Embedding embedding);
    /// What the verb has said so far; null without a result. Of an embedded command, also of one that failed.
    nlohmann::json take_result();

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
    /// The outcome of the verb, once: `text` on stdout, or with --json `object`, which is printed by finish()
    /// or fail() so that there is always exactly one.
    void result(const nlohmann::json& object, const std::string& text);
    /// The same for a verb that goes on: printed at once, and nothing afterwards.
    void announce(const nlohmann::json& object, const std::string& text);
    /// An object is still to be printed, whatever happens.
    bool owes_json() const { return json_ && !announced_; }
    /// The verb has succeeded.
    void finish() const;
    /// The verb has failed: one line on stderr, and with --json the result, if any, with "error" and "code".
    void fail(std::string_view kind, int code, const std::string& message) const;

  private:
    void print_json(const nlohmann::json& object) const;

    bool json_ = false;
    bool quiet_ = false;
    bool announced_ = false;
    int verbosity_ = 0;
    int threads_ = 0;
    std::string progress_style_ = "auto";
    std::string memory_ = "4G";
    std::uint64_t memory_bytes_ = 0;
    CancelToken cancel_;
    Progress progress_;
    std::unique_ptr<nlohmann::json> result_;
    std::optional<Embedding> embedding_;
    std::optional<ProgressListener> listener_;
};

/// The system's directory for temporary files. Throws IoError that names TMPDIR when it cannot be used.
std::filesystem::path scratch_root();

/// "2026-03-01T12:00:00Z"
std::string utc_text(std::int64_t unix_s);

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
