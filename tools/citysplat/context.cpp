#include "citysplat/context.hpp"

#include "citysplat/number_flags.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <unistd.h>

namespace citysplat::cli {

namespace {

using nlohmann::json;

/// The same with texts and keys that are valid UTF-8.
json with_utf8(const json& value) {
    if (value.is_string()) return as_utf8(value.get_ref<const std::string&>());
    if (value.is_array()) {
        json out = json::array();
        for (const json& item : value) out.push_back(with_utf8(item));
        return out;
    }
    if (value.is_object()) {
        json out = json::object();
        for (const auto& [key, item] : value.items()) out[as_utf8(key)] = with_utf8(item);
        return out;
    }
    return value;
}

void print_line(const std::string& line) { std::fprintf(stderr, "%s\n", printable(line).c_str()); }

void write_to_stdout(const std::string& out) {
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0)
        throw IoError("cannot write the result to stdout");
}

}  // namespace

std::filesystem::path scratch_root() {
    std::error_code ec;
    const auto path = std::filesystem::temp_directory_path(ec);
    if (!ec) return path;
    const char* wanted = std::getenv("TMPDIR");
    throw IoError("there is no directory for temporary files" +
                  (wanted ? ": TMPDIR is " + std::string(wanted) : "") +
                  "; make it, or set TMPDIR to one that exists");
}

std::string utc_text(std::int64_t unix_s) {
    const auto t = static_cast<std::time_t>(unix_s);
    std::tm utc{};
    ::gmtime_r(&t, &utc);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text.data();
}

Context::Context() = default;
Context::~Context() = default;

void Context::embed(Embedding embedding) {
    json_ = quiet_ = true;
    embedding_ = std::move(embedding);
    if (embedding_->progress) listener_.emplace(progress_, embedding_->progress);
}

nlohmann::json Context::take_result() { return result_ ? with_utf8(*result_) : nlohmann::json(); }

void Context::add_common_options(CLI::App& app) {
    app.add_flag("--json", json_, "print the result as one JSON object on stdout");
    app.add_option("--progress", progress_style_,
                   "bar, plain, json or none (default: bar on a terminal, else plain)")
        ->check(CLI::IsMember({"auto", "bar", "plain", "json", "none"}))
        ->type_name("STYLE");
    app.add_option("--threads", threads_, "worker threads (default: all cores)")
        ->check(whole_from(1, 1024))
        ->type_name("N");
    app.add_option("--memory", memory_, "memory budget, e.g. 512M or 4G")
        ->capture_default_str()
        ->type_name("SIZE");
    app.add_flag("-q,--quiet", quiet_, "only warnings and results");
    app.add_flag("-v,--verbose", verbosity_, "more detail");
}

void Context::resolve() {
    memory_bytes_ = parse_bytes(memory_, "--memory");
    if (memory_bytes_ < (std::uint64_t{128} << 20))
        throw UsageError("--memory " + memory_ + " is too small; the least is 128M");
    if (threads_ == 0) threads_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (progress_style_ == "json" || listener_)
        progress_ = Progress(ProgressStyle::json);
    else if (quiet_ || embedding_ || progress_style_ == "none")
        progress_ = Progress(ProgressStyle::none);
    else if (progress_style_ == "bar" || (progress_style_ == "auto" && ::isatty(STDERR_FILENO)))
        progress_ = Progress(ProgressStyle::bar);
    else
        progress_ = Progress(ProgressStyle::plain);
}

void Context::say(const std::string& line) const {
    if (!quiet_ && !embedding_) print_line(line);
}

void Context::detail(const std::string& line) const {
    if (verbosity_ > 0) say(line);
}

void Context::warn(const std::string& line) const {
    if (!embedding_) return print_line("warning: " + line);
    if (embedding_->warn) embedding_->warn(printable(line));
}

void Context::result(const nlohmann::json& object, const std::string& text) {
    if (json_)
        result_ = std::make_unique<nlohmann::json>(object);
    else
        write_to_stdout(printable(text));
}

void Context::announce(const nlohmann::json& object, const std::string& text) {
    if (embedding_) throw UsageError("this verb goes on and on: it cannot run inside another program");
    announced_ = true;
    if (json_)
        print_json(object);
    else
        write_to_stdout(printable(text));
}

void Context::print_json(const nlohmann::json& object) const {
    write_to_stdout(with_utf8(object).dump() + "\n");
}

void Context::finish() const {
    if (result_ && !embedding_) print_json(*result_);
}

void Context::fail(std::string_view kind, int code, const std::string& message) const {
    print_line("citysplat: " + message);
    if (!owes_json()) return;
    nlohmann::json object = result_ ? *result_ : nlohmann::json::object();
    object["error"] = {{"kind", kind}, {"message", message}};
    object["code"] = code;
    try {
        print_json(object);
    } catch (const IoError&) {
        // The line above and the exit code are all that is left to say it with.
    }
}

}  // namespace citysplat::cli
