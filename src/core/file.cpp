#include "core/file.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace citysplat {

void throw_errno(std::string_view what, const std::filesystem::path& path) {
    const int error = errno;
    std::string message = std::string(what) + " " + path.string() + ": " + std::strerror(error);
    if (error == ENOSPC || error == EDQUOT) {
        message += "; free some space and run the same command again";
        throw ResourceError(message);
    }
    if (error == EMFILE || error == ENFILE)
        message += "; ulimit -n shows how many this process may open, ulimit -n 1024 allows more";
    throw IoError(message);
}

namespace {

int open_flags(File::Mode mode) {
    switch (mode) {
        case File::Mode::read:
            return O_RDONLY;
        case File::Mode::create_new:
            return O_WRONLY | O_CREAT | O_EXCL;
        case File::Mode::truncate:
            return O_WRONLY | O_CREAT | O_TRUNC;
        case File::Mode::read_write:
            return O_RDWR | O_CREAT;
        case File::Mode::update:
            return O_RDWR;
    }
    return O_RDONLY;
}

}  // namespace

std::string_view name_of(std::filesystem::file_type type) {
    using Type = std::filesystem::file_type;
    switch (type) {
        case Type::regular:
            return "a file";
        case Type::directory:
            return "a directory";
        case Type::fifo:
            return "a FIFO";
        case Type::socket:
            return "a socket";
        case Type::block:
        case Type::character:
            return "a device";
        default:
            return "of an unknown kind";
    }
}

namespace {

[[noreturn]] void refuse_kind(const std::filesystem::path& path) {
    std::error_code ec;
    const auto type = std::filesystem::status(path, ec).type();
    throw IoError("cannot open " + path.string() + ": it is " + std::string(name_of(type)) + ", not a file");
}

}  // namespace

void require_file(const std::filesystem::path& path) { File(path, File::Mode::read); }

File::File(const std::filesystem::path& path, Mode mode) : path_(path) {
    // Without O_NONBLOCK the opening of a FIFO waits for its other end.
    do fd_ = ::open(path.c_str(), open_flags(mode) | O_CLOEXEC | O_NONBLOCK, 0666);
    while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0 && (errno == ENXIO || errno == EISDIR)) refuse_kind(path);
    if (fd_ < 0)
        throw_errno(mode == Mode::read || mode == Mode::update ? "cannot open" : "cannot create", path);
    struct stat status {};
    if (::fstat(fd_, &status) == 0 && !S_ISREG(status.st_mode)) {
        ::close(std::exchange(fd_, -1));
        refuse_kind(path);
    }
}

File File::duplicate() const {
    File copy;
    copy.path_ = path_;
    copy.fd_ = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    if (copy.fd_ < 0) throw_errno("cannot open", path_);
    return copy;
}

File::~File() {
    if (fd_ >= 0) ::close(fd_);
}

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    return *this;
}

std::uint64_t File::size() const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw_errno("cannot stat", path_);
    return static_cast<std::uint64_t>(status.st_size);
}

std::size_t File::read_some_at(std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t n =
            ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw_errno("cannot read", path_);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

void File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
    const std::size_t got = read_some_at(offset, out);
    if (got < out.size())
        throw InputError(path_.string() + ": ends at byte " + std::to_string(offset + got) + ", expected " +
                         std::to_string(out.size()) + " bytes at " + std::to_string(offset));
}

void File::append(std::span<const std::byte> data) {
    while (!data.empty()) {
        const ssize_t n = ::write(fd_, data.data(), data.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw_errno("cannot write", path_);
        data = data.subspan(static_cast<std::size_t>(n));
    }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> data) {
    while (!data.empty()) {
        const ssize_t n = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw_errno("cannot write", path_);
        data = data.subspan(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
}

void File::sync() {
    if (::fsync(fd_) != 0) throw_errno("cannot make durable", path_);
}

void File::close() {
    if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0) throw_errno("cannot close", path_);
}

File temporary_file(const std::filesystem::path& directory) {
    std::string name = (directory / "citysplat-XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) throw_errno("cannot create a temporary file in", directory);
    ::close(descriptor);
    File file(name, File::Mode::read_write);
    std::filesystem::remove(name);
    return file;
}

FileWriter::FileWriter(const std::filesystem::path& path, File::Mode mode, std::size_t buffer_bytes)
    : file_(path, mode), capacity_(buffer_bytes) {
    buffer_.reserve(capacity_);
}

void FileWriter::write(std::span<const std::byte> data) {
    if (buffer_.size() + data.size() > capacity_) flush();
    if (data.size() >= capacity_) {
        file_.append(data);
        written_ += data.size();
    } else {
        buffer_.insert(buffer_.end(), data.begin(), data.end());
    }
}

void FileWriter::flush() {
    file_.append(buffer_);
    written_ += buffer_.size();
    buffer_.clear();
}

void FileWriter::patch(std::uint64_t offset, std::span<const std::byte> data) {
    flush();
    file_.write_at(offset, data);
}

void FileWriter::finish(bool durable) {
    flush();
    if (durable) file_.sync();
    file_.close();
}

namespace {

/// Nothing that is read as a whole is larger; a file that is, is not what it was taken for.
std::size_t whole_size(const File& file) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 30;
    if (file.size() > kMostBytes)
        throw InputError(file.path().string() + ": " + format_bytes(file.size()) +
                         " are more than such a file can have (" + format_bytes(kMostBytes) +
                         "); is it the right one?");
    return static_cast<std::size_t>(file.size());
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path) {
    const File file(path, File::Mode::read);
    std::vector<std::byte> data(whole_size(file));
    file.read_at(0, data);
    return data;
}

std::string read_text_file(const std::filesystem::path& path) {
    const File file(path, File::Mode::read);
    std::string text(whole_size(file), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
}

void sync_directory(const std::filesystem::path& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) throw_errno("cannot open directory", directory);
    const int result = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    if (result != 0) {
        errno = error;
        throw_errno("cannot make durable", directory);
    }
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> data) {
    static std::atomic<std::uint64_t> counter{0};
    // The process number alone is not enough: in a container it is the same in each run, and a run that was
    // killed leaves its file.
    static const std::string began =
        std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    std::filesystem::path temp = path;
    temp += ".tmp-" + std::to_string(::getpid()) + "-" + began + "-" + std::to_string(counter++);
    try {
        File file(temp, File::Mode::create_new);
        file.append(data);
        file.sync();
        file.close();
        if (::rename(temp.c_str(), path.c_str()) != 0) throw_errno("cannot rename to", path);
    } catch (...) {
        ::unlink(temp.c_str());
        throw;
    }
    sync_directory(directory_of(path));
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

namespace {

/// For a directory that may belong to somebody else: one that cannot be opened or synced is left as it is,
/// and only a disk that fails is an error.
void sync_if_possible(const std::filesystem::path& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    const int error = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    errno = error;
    if (error == EIO) throw_errno("cannot make durable", directory);
}

}  // namespace

bool create_directories_durably(const std::filesystem::path& directory) {
    // "a/b/" names the same directory as "a/b".
    const std::filesystem::path path = directory.has_filename() ? directory : directory.parent_path();
    const std::filesystem::path parent = directory_of(path);
    if (std::filesystem::is_directory(path)) {
        sync_if_possible(parent);
        return false;
    }
    create_directories_durably(parent);
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) throw_errno("cannot create", path);
    if (!std::filesystem::is_directory(path))
        throw IoError("cannot create " + path.string() + ": a file is there");
    sync_directory(parent);
    return true;
}

std::uint64_t free_disk_bytes(const std::filesystem::path& directory) {
    struct statvfs status {};
    if (::statvfs(directory.c_str(), &status) != 0) throw_errno("cannot ask for free space of", directory);
    return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

void raise_descriptor_limit() {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // if it fails, the budget is what there was
}

std::size_t descriptor_budget() {
    // Standard streams, locks, the catalog and its journal, and what threads read, hash and spill.
    constexpr rlim_t kInUse = 40, kLeast = 8, kMost = 384;
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
    return static_cast<std::size_t>(std::clamp(std::max(limit.rlim_cur, kInUse) - kInUse, kLeast, kMost));
}

std::uint64_t peak_rss_bytes() {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

Hash128 hash_file(const std::filesystem::path& path, const CancelToken& cancel) {
    const File file(path, File::Mode::read);
    std::vector<std::byte> buffer(std::size_t{4} << 20);
    Hasher hasher;
    for (std::uint64_t at = 0;;) {
        cancel.check();
        const std::size_t got = file.read_some_at(at, buffer);
        hasher.bytes(std::span(buffer).first(got));
        at += got;
        if (got < buffer.size()) return hasher.finish();
    }
}

}  // namespace citysplat
