#include "citysplat/context.hpp"
#include "citysplat/run_command.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace citysplat;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::time_t kDeadline_s = 30;  // everything takes longer
constexpr long kDeadline_ns = 0;
#else
constexpr std::time_t kDeadline_s = 1;
constexpr long kDeadline_ns = 800'000'000;
#endif

constexpr std::string_view kLine =
    "citysplat: interrupted; the work did not stop in time and was ended. Partial files may be left; the "
    "next "
    "run with the same output removes them\n";
constexpr std::string_view kObject =
    R"({"code":130,"error":{"kind":"interrupted","message":"interrupted; the work did not stop in time and was ended"}})"
    "\n";

cli::Context* g_context = nullptr;
timer_t g_deadline;
bool g_has_deadline = false;

// The functions below run in signal handlers: nothing in them may allocate or lock.

void say_to(int descriptor, std::string_view text) {
    if (::write(descriptor, text.data(), text.size()) < 0) return;  // nobody is left to be told
}

[[noreturn]] void end_now() { ::_exit(static_cast<int>(ErrorKind::interrupted)); }

void on_deadline(int) {
    say_to(STDERR_FILENO, kLine);
    if (g_context->owes_json()) say_to(STDOUT_FILENO, kObject);
    end_now();
}

void on_signal(int) {
    if (g_context->cancel().requested()) end_now();
    g_context->cancel().request();
    if (!g_has_deadline) return;
    const itimerspec once{{0, 0}, {kDeadline_s, kDeadline_ns}};
    ::timer_settime(g_deadline, 0, &once, nullptr);
}

void handle(int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
}

/// From now on the first SIGINT or SIGTERM requests cancellation, and the second ends the process at once. So
/// does the deadline: a stage that does not look at its token, or a disk that does not answer, must not keep
/// a user waiting (docs/adr/0516). What is written survives that as it survives a kill.
void catch_interrupts(cli::Context& context) {
    g_context = &context;
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    g_has_deadline = ::timer_create(CLOCK_MONOTONIC, &event, &g_deadline) == 0;
    handle(SIGALRM, on_deadline);
    handle(SIGINT, on_signal);
    handle(SIGTERM, on_signal);
    // Who started us may ignore the ends of children: then nobody could wait for the steps of a night.
    std::signal(SIGCHLD, SIG_DFL);
    // A closed pipe and a file beyond the limit of the shell are failed writes, which we report.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

int fail(const cli::Context& context, ErrorKind kind, const std::string& message) {
    context.fail(name_of(kind), static_cast<int>(kind), message);
    return static_cast<int>(kind);
}

std::string what_failed(const std::filesystem::filesystem_error& e) {
    if (e.path1().empty()) return e.code().message() + " (" + e.what() + ")";
    return "cannot use " + e.path1().string() + ": " + e.code().message();
}

}  // namespace

int main(int argc, char** argv) {
    cli::Context context;
    if (std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; }))
        context.expect_json();
    try {
        raise_descriptor_limit();
        catch_interrupts(context);
        return cli::run_command({argv + 1, argv + argc}, context);
    } catch (const Error& e) {
        return fail(context, e.kind(), e.what());
    } catch (const std::filesystem::filesystem_error& e) {
        return fail(context, ErrorKind::io, what_failed(e));
    } catch (const std::bad_alloc&) {
        return fail(context, ErrorKind::io, "out of memory; lower --memory or --threads");
    } catch (const std::exception& e) {
        return fail(context, ErrorKind::io, std::string("internal error: ") + e.what());
    }
}
