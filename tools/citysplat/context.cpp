#include "citysplat/context.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <unistd.h>

namespace citysplat::cli {

void Context::add_common_options(CLI::App& app) {
    app.add_flag("--json", json_, "print the result as one JSON object on stdout");
    app.add_option("--progress", progress_style_,
                   "bar, plain, json or none (default: bar on a terminal, else plain)")
        ->check(CLI::IsMember({"auto", "bar", "plain", "json", "none"}))
        ->type_name("STYLE");
    app.add_option("--threads", threads_, "worker threads (default: all cores)")
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
    app.add_option("--memory", memory_, "memory budget, e.g. 512M or 4G")
        ->capture_default_str()
        ->type_name("SIZE");
    app.add_flag("-q,--quiet", quiet_, "only warnings and results");
    app.add_flag("-v,--verbose", verbosity_, "more detail");
}

void Context::resolve() {
    memory_bytes_ = parse_bytes(memory_, "--memory");
    if (memory_bytes_ < (std::uint64_t{64} << 20))
        throw UsageError("--memory " + memory_ + " is too small; the least is 64M");
    if (threads_ == 0) threads_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (progress_style_ == "json")
        progress_ = Progress(ProgressStyle::json);
    else if (quiet_ || progress_style_ == "none")
        progress_ = Progress(ProgressStyle::none);
    else if (progress_style_ == "bar" || (progress_style_ == "auto" && ::isatty(STDERR_FILENO)))
        progress_ = Progress(ProgressStyle::bar);
    else
        progress_ = Progress(ProgressStyle::plain);
}

void Context::say(const std::string& line) const {
    if (!quiet_) std::fprintf(stderr, "%s\n", line.c_str());
}

void Context::detail(const std::string& line) const {
    if (verbosity_ > 0) say(line);
}

void Context::warn(const std::string& line) const { std::fprintf(stderr, "warning: %s\n", line.c_str()); }

void Context::result(const nlohmann::json& object, const std::string& text) const {
    const std::string out = json_ ? object.dump() + "\n" : text;
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0)
        throw IoError("cannot write the result to stdout");
}

}  // namespace citysplat::cli
