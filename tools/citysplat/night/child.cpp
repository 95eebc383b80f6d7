#include "citysplat/night/child.hpp"

#include "citysplat/context.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace citysplat::cli {

namespace {

/// A program that was started, with a pipe from its stdout when `out` is given.
class Child {
  public:
    Child(const std::string& program, const std::vector<std::string>& words, bool capture) {
        std::array<int, 2> ends{-1, -1};
        if (capture && ::pipe2(ends.data(), O_CLOEXEC) != 0)
            throw IoError(std::string("cannot make a pipe: ") + std::strerror(errno));
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        if (capture) ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        std::vector<char*> arguments{const_cast<char*>(program.c_str())};
        for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        const int error =
            ::posix_spawnp(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
        ::posix_spawn_file_actions_destroy(&actions);
        if (capture) ::close(ends[1]);
        out_ = ends[0];
        if (error != 0) {
            if (out_ >= 0) ::close(out_);
            throw IoError("cannot start " + program + ": " + std::strerror(error));
        }
    }
    ~Child() {
        if (out_ >= 0) ::close(out_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Reads its stdout to the end and waits for its exit code.
    int finish(std::string& out, const CancelToken& cancel) {
        std::array<char, 65536> buffer{};
        while (out_ >= 0) {
            pollfd wanted{out_, POLLIN, 0};
            ::poll(&wanted, 1, 100);
            pass_on(cancel);
            if (!wanted.revents) continue;
            const ssize_t n = ::read(out_, buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;
            out.append(buffer.data(), static_cast<std::size_t>(n));
        }
        int status = 0;
        for (;;) {
            const pid_t ended = ::waitpid(process_, &status, out_ >= 0 ? 0 : WNOHANG);
            if (ended == process_) break;
            if (ended < 0 && errno != EINTR) throw IoError("a step of the night was lost");
            pass_on(cancel);
            if (ended == 0) ::usleep(50'000);
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

  private:
    void pass_on(const CancelToken& cancel) {
        if (!cancel.requested() || told_) return;
        ::kill(process_, SIGTERM);
        told_ = true;
    }
    pid_t process_ = -1;
    int out_ = -1;
    bool told_ = false;
};

std::string own_program() {
    std::error_code error;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? "citysplat" : path.string();
}

}  // namespace

std::string StepResult::error() const {
    const auto found = result.is_object() ? result.find("error") : result.end();
    if (result.is_object() && found != result.end()) return found->value("message", "");
    return code > 128 ? "it was ended by signal " + std::to_string(code - 128)
                      : "it ended with exit code " + std::to_string(code);
}

StepResult run_verb(const std::vector<std::string>& words, const CancelToken& cancel) {
    StepResult step;
    step.name = words.at(0);
    step.command = {"citysplat"};
    step.command.insert(step.command.end(), words.begin(), words.end());
    std::vector<std::string> all = words;
    all.emplace_back("--json");
    const Stopwatch watch;
    std::string out;
    step.code = Child(own_program(), all, true).finish(out, cancel);
    step.seconds = watch.seconds();
    step.result = nlohmann::json::parse(out, nullptr, false);
    if (step.result.is_discarded()) step.result = nullptr;
    return step;
}

int run_command(const std::vector<std::string>& words, const CancelToken& cancel) {
    try {
        std::string nothing;
        return Child(words.at(0), {words.begin() + 1, words.end()}, false).finish(nothing, cancel);
    } catch (const IoError&) {
        return 127;
    }
}

std::string shell_line(const std::vector<std::string>& words) {
    const auto is_plain = [](const std::string& word) {
        return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
            return std::isalnum(c) || std::strchr("@%+=:,./_-", c) != nullptr;
        });
    };
    std::string line;
    for (const std::string& word : words) {
        std::string quoted = word;
        if (!is_plain(word)) {
            quoted = "'";
            for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
            quoted += "'";
        }
        line += (line.empty() ? "" : " ") + quoted;
    }
    return line;
}

}  // namespace citysplat::cli
