#include "run_program.hpp"

#include "stopped_program.hpp"
#include "temp_dir.hpp"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace citysplat::test {

namespace {

std::string slurp(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

struct Signal {
    int number = 0;
    std::filesystem::path once_exists;  ///< empty: `after` says when
    std::chrono::milliseconds after{0};
};

/// Waits until the file is there, so that the program is surely at work, or the program has ended without it.
void wait_for(const std::filesystem::path& file, pid_t child) {
    siginfo_t ended{};
    while (!std::filesystem::exists(file)) {
        if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid)
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Answer run(const std::vector<std::string>& command, const Signal& signal) {
    const TempDir dir;
    const std::string out = dir / "out", err = dir / "err";
    std::vector<char*> argv;
    for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);

    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        const auto redirect = [](const char* path, int flags, int to) {
            const int fd = ::open(path, flags, 0600);
            if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
        };
        redirect("/dev/null", O_RDONLY, 0);
        redirect(out.c_str(), O_WRONLY | O_CREAT, 1);
        redirect(err.c_str(), O_WRONLY | O_CREAT, 2);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    auto begin = std::chrono::steady_clock::now();
    if (signal.number) {
        if (signal.once_exists.empty())
            std::this_thread::sleep_for(signal.after);
        else
            wait_for(signal.once_exists, child);
        begin = std::chrono::steady_clock::now();
        ::kill(child, signal.number);
    }
    int status = 0;
    struct rusage usage {};
    if (::wait4(child, &status, 0, &usage) != child) throw std::runtime_error("wait4 failed");
    const double seconds = seconds_since(begin);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {{code, slurp(out), slurp(err), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024}, seconds};
}

std::vector<std::string> with_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program());
    return arguments;
}

}  // namespace

Outcome run_program(const std::vector<std::string>& command) { return run(command, {}).outcome; }

std::string program() { return CITYSPLAT_PROGRAM; }

Outcome citysplat(std::vector<std::string> arguments) {
    return run(with_program(std::move(arguments)), {}).outcome;
}

Outcome citysplat_with_signal(std::vector<std::string> arguments, int signal,
                              const std::filesystem::path& once_exists) {
    return run(with_program(std::move(arguments)), {signal, once_exists, {}}).outcome;
}

Answer answer_of_citysplat(std::vector<std::string> arguments, int signal, std::chrono::milliseconds after) {
    return run(with_program(std::move(arguments)), {signal, {}, after});
}

}  // namespace citysplat::test
