#include "tiling/store/filesystem_check.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

using Check = FilesystemReport::Check;

/// A directory of our own that goes away with its files.
class Trial {
  public:
    explicit Trial(const fs::path& parent) {
        std::string pattern = (parent / "citysplat-check-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw_errno("cannot make a directory like", pattern);
        path_ = pattern;
    }
    ~Trial() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    fs::path operator/(const char* name) const { return path_ / name; }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

Check exclusive_creation(const Trial& trial) {
    const fs::path path = trial / "exclusive";
    { const File first(path, File::Mode::create_new); }
    const int second = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool refused = second < 0 && errno == EEXIST;
    if (second >= 0) ::close(second);
    return {"exclusive creation", refused,
            refused ? "" : "two processes can create the same file (O_EXCL); NFS needs version 3 or later"};
}

Check replacement(const Trial& trial) {
    const auto write = [](const fs::path& path, char c) {
        File file(path, File::Mode::truncate);
        file.append(std::as_bytes(std::span(&c, 1)));
        file.close();
    };
    const fs::path a = trial / "a", b = trial / "b";
    write(a, 'a');
    write(b, 'b');
    const bool replaced = ::rename(a.c_str(), b.c_str()) == 0 && !fs::exists(a) && read_text_file(b) == "a";
    return {"replacement by rename", replaced,
            replaced ? "" : "a file cannot be replaced by renaming another; object stores cannot do that"};
}

Check durability(const Trial& trial) {
    try {
        File file(trial / "durable", File::Mode::create_new);
        file.sync();
        file.close();
        sync_directory(trial.path());
        return {"durability (fsync)", true, ""};
    } catch (const Error& error) {
        return {"durability (fsync)", false, error.what()};
    }
}

Check times(const Trial& trial) {
    const fs::path path = trial / "touched";
    { const File file(path, File::Mode::create_new); }
    struct stat before {
    }, after{};
    const timespec old[2] = {{1, 0}, {1, 0}};
    const bool touched = ::utimensat(AT_FDCWD, path.c_str(), old, 0) == 0 &&
                         ::stat(path.c_str(), &before) == 0 &&
                         ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0 &&
                         ::stat(path.c_str(), &after) == 0 && after.st_mtim.tv_sec > before.st_mtim.tv_sec;
    if (!touched)
        return {"times of files", false, "a file cannot be touched, so that claims seem to be dead"};
    const auto skew = static_cast<long>(after.st_mtim.tv_sec) - static_cast<long>(std::time(nullptr));
    return {"times of files", true,
            std::abs(skew) <= 1
                ? ""
                : "its clock differs from this host's by " + std::to_string(skew) + " s, which does no harm"};
}

Check locks(const Trial& trial) {
    const File one(trial / "lock", File::Mode::read_write), two(trial / "lock", File::Mode::read_write);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    whole.l_len = 1;
    if (::fcntl(one.descriptor(), F_OFD_SETLK, &whole) != 0)
        return {"record locks", false,
                std::string("fcntl: ") + std::strerror(errno) +
                    "; mount Lustre with -o flock, NFS without nolock"};
    const bool excluded =
        ::fcntl(two.descriptor(), F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES);
    return {"record locks", excluded, excluded ? "" : "two processes can hold the same lock"};
}

struct Mount {
    std::string where, type, options;
};

/// The mount that a directory is on, as /proc/self/mounts has it.
Mount mount_of(const fs::path& directory) {
    std::error_code ignored;
    const std::string path = fs::weakly_canonical(directory, ignored).string();
    Mount found;
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream in(line);
        std::string device;
        Mount mount;
        in >> device >> mount.where >> mount.type >> mount.options;
        const bool inside = path == mount.where || mount.where == "/" ||
                            (path.starts_with(mount.where) && path[mount.where.size()] == '/');
        if (in && inside && mount.where.size() >= found.where.size()) found = mount;
    }
    return found;
}

/// Locks that succeed on each host for itself cannot be told from good ones by trying.
Check locks_across_hosts(const Mount& mount) {
    const auto has = [&](const std::string& option) {
        return ("," + mount.options + ",").find("," + option + ",") != std::string::npos;
    };
    const char* const name = "locks across hosts";
    if (mount.type == "lustre" && (has("localflock") || !has("flock")))
        return {name, false, "Lustre locks each host for itself here; mount it with -o flock"};
    if (mount.type.starts_with("nfs") && (has("nolock") || has("local_lock=all") || has("local_lock=posix")))
        return {name, false, "NFS locks each host for itself here; mount it without nolock and local_lock"};
    return {name, true,
            mount.type.starts_with("fuse") ? "a file system in user space (" + mount.type +
                                                 "): try selftest --filesystem on two hosts at once"
                                           : ""};
}

}  // namespace

bool FilesystemReport::is_safe() const {
    return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
}

FilesystemReport check_filesystem(const fs::path& directory) {
    const Mount mount = mount_of(directory);
    FilesystemReport report{mount.type, mount.where, {}};
    const Trial trial(directory);
    report.checks = {
        exclusive_creation(trial), replacement(trial), durability(trial), times(trial), locks(trial),
        locks_across_hosts(mount)};
    return report;
}

void require_safe_filesystem(const fs::path& directory) {
    for (const Check& check : check_filesystem(directory).checks)
        if (!check.passed)
            throw ConfigError(directory.string() + ": its file system is not safe for several processes: " +
                              check.name + ": " + check.message);
}

}  // namespace citysplat::tiling
