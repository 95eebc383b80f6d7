// Loaded with LD_PRELOAD before a program: writes down everything it does to the files below a directory.
//
//   POWER_ROOT  the directory, absolute and without symbolic links
//   POWER_LOG   the log (operation_log.hpp), outside of it
//
// The calls are those that SQLite, libstdc++ and the project make. One lock is held from before a call until
// its record is written, so that the order of the log is the order of the calls. A way to change a file that
// is not caught here (stdio, whose writes never leave the C library; splice; ioctl) shows when the log is
// played back: the outcome differs from what the program left.

#include "power/operation_log.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <string_view>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using citysplat::power::OperationHeader;
using citysplat::power::OperationKind;

std::string link_target(const char* link) {
    char path[4096];
    const ssize_t n = ::readlink(link, path, sizeof path);
    return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

std::string path_of(int fd) {
    std::string path = link_target(("/proc/self/fd/" + std::to_string(fd)).c_str());
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
    return path;
}

std::string absolute(int directory, const char* name) {
    std::filesystem::path path(name);
    if (path.is_relative())
        path = (directory == AT_FDCWD ? link_target("/proc/self/cwd") : path_of(directory)) / path;
    std::string text = path.lexically_normal().string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

std::uint64_t inode_of(int fd) {
    struct stat s {};
    return ::fstat(fd, &s) == 0 ? s.st_ino : 0;
}

std::uint64_t inode_of(const std::string& path) {
    struct stat s {};
    return ::lstat(path.c_str(), &s) == 0 ? s.st_ino : 0;
}

struct Record {
    OperationKind kind;
    std::uint64_t inode = 0, offset = 0;
    std::string_view path{}, target{};
    const void* data = nullptr;
    std::size_t data_bytes = 0;
};

class Recorder {
  public:
    Recorder() {
        const char *root = std::getenv("POWER_ROOT"), *log = std::getenv("POWER_LOG");
        if (!root || !log) return;
        root_ = root;
        log_ = static_cast<int>(
            ::syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
        if (log_ < 0) stop("cannot create the log");
    }

    bool watches(const std::string& path) const {
        return !root_.empty() && path.starts_with(root_) &&
               (path.size() == root_.size() || path[root_.size()] == '/');
    }

    void write(const Record& r) const {
        const OperationHeader header{r.kind,
                                     static_cast<std::uint32_t>(r.path.size()),
                                     static_cast<std::uint32_t>(r.target.size()),
                                     static_cast<std::uint32_t>(r.data_bytes),
                                     r.inode,
                                     r.offset};
        put(&header, sizeof header);
        put(r.path.data(), r.path.size());
        put(r.target.data(), r.target.size());
        put(r.data, r.data_bytes);
    }

    std::mutex& mutex() { return mutex_; }

  private:
    void put(const void* data, std::size_t n) const {
        for (auto* at = static_cast<const char*>(data); n > 0;) {
            const long written = ::syscall(SYS_write, log_, at, n);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) stop("cannot write the log");
            at += written;
            n -= static_cast<std::size_t>(written);
        }
    }

    [[noreturn]] static void stop(const char* why) {
        std::perror(why);
        ::_exit(125);
    }

    std::string root_;
    int log_ = -1;
    std::mutex mutex_;
};

/// Never destroyed: destructors of the program may still write files.
Recorder& recorder() {
    static Recorder& r = *new Recorder;
    return r;
}

/// Makes the call. When it concerns the directory and succeeds, `record` writes it down before another thread
/// can make one.
template <class Call, class Write>
auto recorded(bool watched, const Call& call, const Write& record) {
    if (!watched) return call();
    const std::lock_guard lock(recorder().mutex());
    const auto result = call();
    if (result >= 0) {
        const int error = errno;
        record(result);
        errno = error;
    }
    return result;
}

void note_unknown(const char* call) { recorder().write({.kind = OperationKind::unknown, .path = call}); }

int open_at(int directory, const char* name, int flags, mode_t mode) {
    const std::string path = absolute(directory, name);
    struct stat before {};
    bool existed = false;
    return recorded(
        recorder().watches(path),
        [&] {
            existed = ::stat(path.c_str(), &before) == 0;
            return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
        },
        [&](int fd) {
            if ((flags & O_TMPFILE) == O_TMPFILE) return note_unknown("open with O_TMPFILE");
            if (!existed)
                recorder().write({.kind = OperationKind::create, .inode = inode_of(fd), .path = path});
            else if ((flags & O_TRUNC) && before.st_size > 0)
                recorder().write({.kind = OperationKind::truncate, .inode = before.st_ino, .path = path});
        });
}

mode_t mode_of(int flags, std::va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? static_cast<mode_t>(va_arg(arguments, unsigned)) : mode_t{0};
}

void note_write(int fd, const std::string& path, std::uint64_t offset, const void* data, std::size_t n) {
    recorder().write({.kind = OperationKind::write,
                      .inode = inode_of(fd),
                      .offset = offset,
                      .path = path,
                      .data = data,
                      .data_bytes = n});
}

/// Where a write of n bytes that has just moved the position began.
std::uint64_t began(int fd, long n) { return static_cast<std::uint64_t>(::lseek(fd, 0, SEEK_CUR) - n); }

/// Notes n bytes that the system copied into the file by itself.
void note_copied(int fd, const std::string& path, std::uint64_t offset, std::size_t n) {
    std::string bytes(n, '\0');
    const int in = static_cast<int>(::syscall(
        SYS_openat, AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC, 0));
    if (in < 0 || ::pread(in, bytes.data(), n, static_cast<off_t>(offset)) != static_cast<ssize_t>(n))
        note_unknown("copy that cannot be read back");
    else
        note_write(fd, path, offset, bytes.data(), n);
    ::close(in);
}

ssize_t write_vector(int fd, const iovec* parts, int count, std::uint64_t* offset) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path),
        [&] {
            return offset ? ::syscall(SYS_pwritev, fd, parts, count, *offset, 0)
                          : ::syscall(SYS_writev, fd, parts, count);
        },
        [&](long n) {
            std::string data;
            for (int i = 0; i < count; ++i)
                data.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
            note_write(fd, path, offset ? *offset : began(fd, n), data.data(), static_cast<std::size_t>(n));
        });
}

int sync_file(int fd, long call) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path), [&] { return static_cast<int>(::syscall(call, fd)); },
        [&](int) { recorder().write({.kind = OperationKind::sync, .inode = inode_of(fd), .path = path}); });
}

void note_size(int fd, const std::string& path) {
    struct stat s {};
    ::fstat(fd, &s);
    recorder().write({.kind = OperationKind::truncate,
                      .inode = s.st_ino,
                      .offset = static_cast<std::uint64_t>(s.st_size),
                      .path = path});
}

int rename_at(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
    const std::string path = absolute(from_directory, from), target = absolute(to_directory, to);
    const bool leaves = recorder().watches(path), comes = recorder().watches(target);
    return recorded(
        leaves || comes,
        [&] {
            return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
        },
        [&](int) {
            if (leaves != comes) return note_unknown("rename across the edge of the directory");
            if (flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) return note_unknown("renameat2 with flags");
            recorder().write({.kind = OperationKind::rename, .path = path, .target = target});
        });
}

int link_at(int from_directory, const char* from, int to_directory, const char* to, int flags) {
    const std::string path = absolute(from_directory, from), target = absolute(to_directory, to);
    return recorded(
        recorder().watches(target),
        [&] {
            return static_cast<int>(::syscall(SYS_linkat, from_directory, from, to_directory, to, flags));
        },
        [&](int) { recorder().write({.kind = OperationKind::link, .path = path, .target = target}); });
}

int remove_at(int directory, const char* name, int flags) {
    const std::string path = absolute(directory, name);
    return recorded(
        recorder().watches(path),
        [&] { return static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags)); },
        [&](int) { recorder().write({.kind = OperationKind::remove, .path = path}); });
}

int make_directory_at(int directory, const char* name, mode_t mode) {
    const std::string path = absolute(directory, name);
    return recorded(
        recorder().watches(path),
        [&] { return static_cast<int>(::syscall(SYS_mkdirat, directory, name, mode)); },
        [&](int) {
            recorder().write({.kind = OperationKind::make_directory, .inode = inode_of(path), .path = path});
        });
}

void note_exit(int status, void*) {
    const std::lock_guard lock(recorder().mutex());
    recorder().write({.kind = OperationKind::exit, .offset = static_cast<std::uint64_t>(status)});
}

/// Registered first, called last.
[[gnu::constructor]] void begin() {
    if (std::getenv("POWER_LOG")) ::on_exit(note_exit, nullptr);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(directory, path, flags, mode);
}

int openat64(int directory, const char* path, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_at(directory, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) { return creat(path, mode); }

// What the headers make of open() in a program compiled with _FORTIFY_SOURCE.
int __open_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char* path, int flags) { return open_at(directory, path, flags, 0); }
int __openat64_2(int directory, const char* path, int flags) { return open_at(directory, path, flags, 0); }

ssize_t write(int fd, const void* data, size_t n) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path), [&] { return ::syscall(SYS_write, fd, data, n); },
        [&](long written) {
            note_write(fd, path, began(fd, written), data, static_cast<std::size_t>(written));
        });
}

ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path), [&] { return ::syscall(SYS_pwrite64, fd, data, n, at); },
        [&](long written) {
            note_write(fd, path, static_cast<std::uint64_t>(at), data, static_cast<std::size_t>(written));
        });
}

ssize_t pwrite64(int fd, const void* data, size_t n, off64_t at) { return pwrite(fd, data, n, at); }

ssize_t writev(int fd, const iovec* parts, int count) { return write_vector(fd, parts, count, nullptr); }

ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
    auto offset = static_cast<std::uint64_t>(at);
    return write_vector(fd, parts, count, &offset);
}

ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t at) { return pwritev(fd, parts, count, at); }

ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t n, unsigned flags) {
    const std::string path = path_of(out);
    const off64_t at = to ? *to : -1;
    return recorded(
        recorder().watches(path), [&] { return ::syscall(SYS_copy_file_range, in, from, out, to, n, flags); },
        [&](long copied) {
            note_copied(out, path, at >= 0 ? static_cast<std::uint64_t>(at) : began(out, copied),
                        static_cast<std::size_t>(copied));
        });
}

ssize_t sendfile(int out, int in, off_t* from, size_t n) {
    const std::string path = path_of(out);
    return recorded(
        recorder().watches(path), [&] { return ::syscall(SYS_sendfile, out, in, from, n); },
        [&](long copied) { note_copied(out, path, began(out, copied), static_cast<std::size_t>(copied)); });
}

ssize_t sendfile64(int out, int in, off64_t* from, size_t n) { return sendfile(out, in, from, n); }

int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t size) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path), [&] { return static_cast<int>(::syscall(SYS_ftruncate, fd, size)); },
        [&](int) { note_size(fd, path); });
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int truncate(const char* name, off_t size) {
    const std::string path = absolute(AT_FDCWD, name);
    return recorded(
        recorder().watches(path), [&] { return static_cast<int>(::syscall(SYS_truncate, name, size)); },
        [&](int) {
            recorder().write({.kind = OperationKind::truncate,
                              .inode = inode_of(path),
                              .offset = static_cast<std::uint64_t>(size),
                              .path = path});
        });
}

int truncate64(const char* path, off64_t size) { return truncate(path, size); }

int fallocate(int fd, int mode, off_t at, off_t n) {
    const std::string path = path_of(fd);
    return recorded(
        recorder().watches(path), [&] { return static_cast<int>(::syscall(SYS_fallocate, fd, mode, at, n)); },
        [&](int) {
            if (mode & ~FALLOC_FL_KEEP_SIZE) return note_unknown("fallocate that changes data");
            note_size(fd, path);
        });
}

int fallocate64(int fd, int mode, off64_t at, off64_t n) { return fallocate(fd, mode, at, n); }

int posix_fallocate(int fd, off_t at, off_t n) { return fallocate(fd, 0, at, n) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t n) { return posix_fallocate(fd, at, n); }

int rename(const char* from, const char* to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }

int renameat(int from_directory, const char* from, int to_directory, const char* to) {
    return rename_at(from_directory, from, to_directory, to, 0);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
    return rename_at(from_directory, from, to_directory, to, flags);
}

int link(const char* from, const char* to) { return link_at(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) {
    return link_at(from_directory, from, to_directory, to, flags);
}

int symlinkat(const char* target, int directory, const char* name) {
    return recorded(
        recorder().watches(absolute(directory, name)),
        [&] { return static_cast<int>(::syscall(SYS_symlinkat, target, directory, name)); },
        [&](int) { note_unknown("symlink"); });
}

int symlink(const char* target, const char* name) { return symlinkat(target, AT_FDCWD, name); }

int unlink(const char* path) { return remove_at(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char* path, int flags) { return remove_at(directory, path, flags); }
int rmdir(const char* path) { return remove_at(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) {
    if (unlink(path) == 0) return 0;
    return errno == EISDIR || errno == EPERM ? rmdir(path) : -1;
}

int mkdir(const char* path, mode_t mode) { return make_directory_at(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char* path, mode_t mode) { return make_directory_at(directory, path, mode); }

void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED) && recorder().watches(path_of(fd))) {
        const std::lock_guard lock(recorder().mutex());
        note_unknown("mmap to write");
    }
    return reinterpret_cast<void*>(::syscall(SYS_mmap, at, n, protection, flags, fd, offset));
}

void* mmap64(void* at, size_t n, int protection, int flags, int fd, off64_t offset) {
    return mmap(at, n, protection, flags, fd, offset);
}

}  // extern "C"
