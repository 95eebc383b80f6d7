// Loaded with LD_PRELOAD before a program under test: fails or kills it at a chosen file operation.
//
//   FAULT_DIR   only operations on files below this directory count
//   FAULT_AT    number of the operation, from 1
//   FAULT_KIND  count    do nothing, write the number of operations to FAULT_LOG at the end
//               kill     SIGKILL instead of the operation
//               power    the same, after cutting every object and temporary file back to what was fsynced
//               enospc   writes fail with ENOSPC from this operation on
//               eio      this fsync fails with EIO
//   FAULT_OPS   all (default) or fsync

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

enum class Operation { write, sync, name };

const char* environment(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

struct Faults {
    std::string directory = environment("FAULT_DIR", "");
    std::string kind = environment("FAULT_KIND", "count");
    long at = std::atol(environment("FAULT_AT", "0"));
    bool only_sync = std::strcmp(environment("FAULT_OPS", "all"), "fsync") == 0;
    std::atomic<long> operations{0};
    std::mutex mutex;
    std::map<ino_t, off_t> durable;  ///< files with bytes that no fsync has covered → what is safe

    ~Faults() {
        const char* log = std::getenv("FAULT_LOG");
        if (!log || kind != "count") return;
        if (FILE* f = std::fopen(log, "w")) {
            std::fprintf(f, "%ld\n", operations.load());
            std::fclose(f);
        }
    }
};

Faults& faults() {
    static Faults f;
    return f;
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool below(const std::string& path) {
    return !faults().directory.empty() && path.rfind(faults().directory, 0) == 0;
}

std::string path_of(int fd) {
    char link[64], path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = ::readlink(link, path, sizeof path);
    return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

bool below(int fd) { return below(path_of(fd)); }

/// SQLite syncs the directory of its journal and takes no notice of the outcome: at worst a deleted journal
/// comes back after a power cut and undoes the last transaction, which leaves the generation before.
bool is_unchecked_sync(int fd) { return faults().only_sync && path_of(fd) == faults().directory; }

void note_write(int fd) {
    struct stat s {};
    if (::fstat(fd, &s) != 0) return;
    const std::lock_guard lock(faults().mutex);
    faults().durable.try_emplace(s.st_ino, s.st_size);
}

void note_sync(int fd) {
    struct stat s {};
    if (::fstat(fd, &s) != 0) return;
    const std::lock_guard lock(faults().mutex);
    faults().durable.erase(s.st_ino);
}

void cut_back(const std::string& directory) {
    DIR* d = ::opendir(directory.c_str());
    if (!d) return;
    while (const dirent* entry = ::readdir(d)) {
        const std::string name = entry->d_name, path = directory + "/" + name;
        struct stat s {};
        if (name == "." || name == ".." || ::lstat(path.c_str(), &s) != 0) continue;
        if (S_ISDIR(s.st_mode)) cut_back(path);
        const auto found = faults().durable.find(s.st_ino);
        if (S_ISREG(s.st_mode) && found != faults().durable.end() &&
            ::truncate(path.c_str(), found->second) != 0)
            std::perror("fault_shim: truncate");
    }
    ::closedir(d);
}

/// True: the operation must fail with errno as set.
bool strike(Operation operation) {
    Faults& f = faults();
    if (f.only_sync && operation != Operation::sync) return false;
    const long n = ++f.operations;
    if (f.at == 0 || n < f.at) return false;
    if (f.kind == "enospc" && operation == Operation::write) {
        errno = ENOSPC;
        return true;
    }
    if (n > f.at) return false;
    if (f.kind == "eio" && operation == Operation::sync) {
        errno = EIO;
        return true;
    }
    if (f.kind == "power") {
        const std::lock_guard lock(f.mutex);
        cut_back(f.directory + "/objects");
        cut_back(f.directory + "/tmp");
    }
    if (f.kind == "kill" || f.kind == "power") ::kill(::getpid(), SIGKILL);
    return false;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t n) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
    if (below(fd)) {
        note_write(fd);
        if (strike(Operation::write)) return -1;
    }
    return real(fd, data, n);
}

ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
    if (below(fd)) {
        note_write(fd);
        if (strike(Operation::write)) return -1;
    }
    return real(fd, data, n, at);
}

ssize_t pwrite64(int fd, const void* data, size_t n, off64_t at) { return pwrite(fd, data, n, at); }

int fsync(int fd) {
    static const auto real = next<int (*)(int)>("fsync");
    if (below(fd) && !is_unchecked_sync(fd)) {
        if (strike(Operation::sync)) return -1;
        note_sync(fd);
    }
    return real(fd);
}

int fdatasync(int fd) {
    static const auto real = next<int (*)(int)>("fdatasync");
    if (below(fd) && !is_unchecked_sync(fd)) {
        if (strike(Operation::sync)) return -1;
        note_sync(fd);
    }
    return real(fd);
}

int rename(const char* from, const char* to) {
    static const auto real = next<int (*)(const char*, const char*)>("rename");
    if (below(std::string(to)) && strike(Operation::name)) return -1;
    return real(from, to);
}

int unlink(const char* path) {
    static const auto real = next<int (*)(const char*)>("unlink");
    if (below(std::string(path)) && strike(Operation::name)) return -1;
    return real(path);
}

}  // extern "C"
