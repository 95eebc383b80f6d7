#include "citysplat/context.hpp"
#include "citysplat/run_command.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace citysplat;

CancelToken* g_cancel = nullptr;

/// The first signal asks politely; the second does not wait.
void on_signal(int) {
    if (g_cancel->requested()) ::_exit(static_cast<int>(ErrorKind::interrupted));
    g_cancel->request();
}

void catch_interrupts(CancelToken& cancel) {
    g_cancel = &cancel;
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
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
        catch_interrupts(context.cancel());
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
