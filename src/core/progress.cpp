#include "core/progress.hpp"

#include "core/bytes.hpp"
#include "core/listening/progress_listener.hpp"
#include "core/printable.hpp"

#include <cinttypes>
#include <cstdio>
#include <map>

namespace citysplat {

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t interval_ns(ProgressStyle style) {
    return style == ProgressStyle::plain ? 5'000'000'000 : 200'000'000;
}

/// Between the quotes of a JSON string: names of stages hold names of files.
std::string json_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            out += code;
            continue;
        }
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string rate_text(double per_second, const std::string& unit) {
    char text[64];
    if (per_second >= 1e6)
        std::snprintf(text, sizeof text, "%.2f M%s/s", per_second / 1e6, unit.c_str());
    else if (per_second >= 1e4)
        std::snprintf(text, sizeof text, "%.1f k%s/s", per_second / 1e3, unit.c_str());
    else if (per_second >= 1)
        std::snprintf(text, sizeof text, "%.1f %s/s", per_second, unit.c_str());
    else
        std::snprintf(text, sizeof text, "%.1f %s/min", per_second * 60, unit.c_str());
    return text;
}

/// Who hears which Progress. They are few, and asked a few times a second.
struct Listeners {
    std::mutex mutex;
    std::map<const Progress*, std::function<void(const ProgressNote&)>> hear;
};
Listeners& listeners() {
    static Listeners all;
    return all;
}

/// True when somebody heard it.
bool tell_listener(const Progress& progress, const ProgressNote& note) {
    Listeners& all = listeners();
    const std::lock_guard lock(all.mutex);
    const auto found = all.hear.find(&progress);
    if (found == all.hear.end()) return false;
    found->second(note);
    return true;
}

}  // namespace

ProgressListener::ProgressListener(const Progress& progress, std::function<void(const ProgressNote&)> hear)
    : progress_(&progress) {
    const std::lock_guard lock(listeners().mutex);
    listeners().hear.emplace(&progress, std::move(hear));
}
ProgressListener::~ProgressListener() {
    const std::lock_guard lock(listeners().mutex);
    listeners().hear.erase(progress_);
}

Progress::Stage::Stage(Progress& progress, std::string_view name, std::uint64_t total, std::string_view unit)
    : progress_(progress),
      name_(printable(name)),
      unit_(unit),
      total_(total),
      begin_(Clock::now()),
      next_report_ns_(interval_ns(progress.style_)) {}

Progress::Stage::~Stage() { report(true); }

void Progress::Stage::advance(std::uint64_t units) {
    done_.fetch_add(units, std::memory_order_relaxed);
    if (progress_.style_ == ProgressStyle::none) return;
    const auto elapsed_ns = std::chrono::nanoseconds(Clock::now() - begin_).count();
    if (elapsed_ns < next_report_ns_.load(std::memory_order_relaxed)) return;
    report(false);
}

void Progress::Stage::report(bool last) {
    if (progress_.style_ == ProgressStyle::none) return;
    std::unique_lock lock(printing_, std::defer_lock);
    if (last)
        lock.lock();
    else if (!lock.try_lock())
        return;
    const auto elapsed = std::chrono::nanoseconds(Clock::now() - begin_);
    next_report_ns_ = elapsed.count() + interval_ns(progress_.style_);
    const double seconds = std::chrono::duration<double>(elapsed).count();
    const bool too_short_to_mention = last && seconds < 0.5 && progress_.style_ != ProgressStyle::json;
    if (too_short_to_mention) return;
    const std::uint64_t done = done_;
    const double per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    const bool has_eta = !last && total_ > done && done > 0;
    const double eta_s = has_eta ? static_cast<double>(total_ - done) / per_second : 0;

    if (progress_.style_ == ProgressStyle::json) {
        if (tell_listener(progress_, {name_, unit_, done, total_, seconds, last})) return;
        std::fprintf(
            stderr,
            "{\"stage\":\"%s\",\"done\":%" PRIu64 ",\"total\":%" PRIu64
            ",\"unit\":\"%s\",\"seconds\":%.3f,\"per_second\":%.1f,\"eta_s\":%.1f,\"finished\":%s}\n",
            json_text(name_).c_str(), done, total_, unit_.c_str(), seconds, per_second, eta_s,
            last ? "true" : "false");
        return;
    }
    std::string line = name_ + ": " + format_count(done);
    if (total_ > 0) {
        char percent[16];
        std::snprintf(percent, sizeof percent, " (%.0f %%)",
                      100.0 * static_cast<double>(done) / static_cast<double>(total_));
        line += " of " + format_count(total_) + " " + unit_ + percent;
    } else {
        line += " " + unit_;
    }
    line += ", " + rate_text(per_second, unit_);
    line += last ? ", took " + format_duration(seconds) : has_eta ? ", ETA " + format_duration(eta_s) : "";
    if (progress_.style_ == ProgressStyle::bar)
        std::fprintf(stderr, "\r\033[K%s%s", line.c_str(), last ? "\n" : "");
    else
        std::fprintf(stderr, "%s\n", line.c_str());
    std::fflush(stderr);
}

}  // namespace citysplat
