#include "tiling/store/city_lock.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace citysplat::tiling {

namespace {

constexpr std::int64_t kBuilderByte = 0;
constexpr std::int64_t kStagingByte = std::int64_t{1} << 40;
constexpr std::size_t kHolderBytes = 256;

/// What a second builder is told: one line, blank-padded so that a longer earlier one leaves no tail.
std::array<char, kHolderBytes> holder_line(std::string_view verb) {
    std::array<char, 128> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 32> when{};
    std::strftime(when.data(), when.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    const std::string text = "citysplat " + std::string(verb) + ", process " + std::to_string(::getpid()) +
                             " on " + host.data() + ", since " + when.data();
    std::array<char, kHolderBytes> line;
    line.fill(' ');
    std::copy_n(text.begin(), std::min(text.size(), kHolderBytes - 1), line.begin());
    line.back() = '\n';
    return line;
}

std::string read_holder(const File& file) {
    std::string text(kHolderBytes, '\0');
    text.resize(file.read_some_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
    const auto end = text.find_last_not_of(" \n");
    return end == std::string::npos ? "another process" : text.substr(0, end + 1);
}

struct flock request_for(std::int64_t byte, bool exclusive) {
    struct flock request {};
    request.l_type = exclusive ? F_WRLCK : F_RDLCK;
    request.l_whence = SEEK_SET;
    request.l_start = byte;
    request.l_len = 1;
    return request;
}

[[noreturn]] void busy(const CityPaths& paths, const File& file) {
    throw BusyError(paths.root().string() + " is busy: " + read_holder(file) +
                    "; wait for it to finish and try again");
}

}  // namespace

bool CityLock::try_lock(std::int64_t byte, bool exclusive) const {
    struct flock request = request_for(byte, exclusive);
    int result;
    do result = ::fcntl(file_.descriptor(), F_OFD_SETLK, &request);
    while (result != 0 && errno == EINTR);
    if (result == 0) return true;
    if (errno == EAGAIN || errno == EACCES) return false;
    throw_errno("cannot lock", file_.path());
}

CityLock CityLock::builder(const CityPaths& paths, std::string_view verb) {
    CityLock lock{File(paths.lock(), File::Mode::read_write)};
    if (!lock.try_lock(kBuilderByte, true)) busy(paths, lock.file_);
    const auto line = holder_line(verb);
    try {
        lock.file_.write_at(0, std::as_bytes(std::span(line)));
    } catch (const Error&) {
        // Only what others are told. A full disk must not keep gc from making room.
    }
    return lock;
}

CityLock CityLock::shard(const CityPaths& paths) {
    CityLock lock{File(paths.lock(), File::Mode::read_write)};
    if (!lock.try_lock(kBuilderByte, false)) busy(paths, lock.file_);
    return lock;
}

CityLock CityLock::staging(const CityPaths& paths, const CancelToken& cancel) {
    CityLock lock{File(paths.lock(), File::Mode::read_write)};
    while (!lock.try_lock(kStagingByte, true)) {
        cancel.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return lock;
}

std::optional<CityLock> CityLock::pin(const CityPaths& paths, std::int64_t generation) {
    CityLock lock = several(paths, File::Mode::read);
    if (!lock.add_pin(generation)) return std::nullopt;
    return lock;
}

CityLock CityLock::several(const CityPaths& paths, File::Mode mode) {
    if (mode == File::Mode::read && !std::filesystem::exists(paths.lock())) return CityLock{File()};
    return CityLock{File(paths.lock(), mode)};
}

bool CityLock::add_pin(std::int64_t generation) const {
    return !file_.is_open() || try_lock(generation, false);
}

bool CityLock::add_collect(std::int64_t generation) const { return try_lock(generation, true); }

bool CityLock::is_any_pinned(const CityPaths& paths, std::int64_t first, std::int64_t last) {
    if (first > last || !std::filesystem::exists(paths.lock())) return false;
    const File file(paths.lock(), File::Mode::read);
    struct flock request = request_for(first, true);
    request.l_len = last - first + 1;
    if (::fcntl(file.descriptor(), F_OFD_GETLK, &request) != 0)
        throw_errno("cannot ask for locks of", paths.lock());
    return request.l_type != F_UNLCK;
}

}  // namespace citysplat::tiling
