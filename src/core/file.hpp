#pragma once

#include "core/cancel.hpp"
#include "core/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// An open file descriptor with exact reads and writes. Every failure is an IoError that names the file and
/// what the system said; a full disk says so. Only regular files are opened: directories, FIFOs, sockets and
/// devices are refused at once. `read_at` may be called from several threads.
class File {
  public:
    /// `read_write` makes a file that is not there, `update` does not.
    enum class Mode { read, create_new, truncate, read_write, update };

    File() = default;
    File(const std::filesystem::path& path, Mode mode);
    ~File();
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;

    bool is_open() const { return fd_ >= 0; }
    int descriptor() const { return fd_; }
    const std::filesystem::path& path() const { return path_; }
    /// The same open file under another descriptor: locks and position are shared.
    File duplicate() const;

    std::uint64_t size() const;
    /// Reads exactly `out.size()` bytes; a shorter file is an InputError.
    void read_at(std::uint64_t offset, std::span<std::byte> out) const;
    /// Reads up to `out.size()` bytes; less only at the end of the file.
    std::size_t read_some_at(std::uint64_t offset, std::span<std::byte> out) const;
    void append(std::span<const std::byte> data);  ///< at the current position
    void write_at(std::uint64_t offset, std::span<const std::byte> data);
    void sync();
    /// Closes and reports what the system only says on close. The destructor closes silently.
    void close();

  private:
    int fd_ = -1;
    std::filesystem::path path_;
};

/// A new file for reading and writing in `directory` that is already deleted: it vanishes with the process,
/// however that ends.
File temporary_file(const std::filesystem::path& directory);

/// A buffered sequential writer on a File.
class FileWriter {
  public:
    explicit FileWriter(const std::filesystem::path& path, File::Mode mode = File::Mode::truncate,
                        std::size_t buffer_bytes = std::size_t{1} << 20);
    void write(std::span<const std::byte> data);
    void text(std::string_view s) { write(std::as_bytes(std::span(s.data(), s.size()))); }
    std::uint64_t position() const { return written_ + buffer_.size(); }
    const File& file() const { return file_; }
    /// Flushes, then overwrites earlier bytes (headers whose content is known at the end).
    void patch(std::uint64_t offset, std::span<const std::byte> data);
    void flush();
    /// Flush and close; `durable` also fsyncs.
    void finish(bool durable = false);

  private:
    File file_;
    std::vector<std::byte> buffer_;
    std::size_t capacity_;
    std::uint64_t written_ = 0;
};

/// A whole file as bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path);
/// A whole file as text, without the byte order mark that some editors put in front of UTF-8.
std::string read_text_file(const std::filesystem::path& path);
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Replaces `path` so that a crash leaves the old or the new content, never a mixture:
/// temp in the same directory → write → fsync → rename → fsync of the directory.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> data);

void sync_directory(const std::filesystem::path& directory);
/// The directory that holds the entry `path`; "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);
/// Creates a directory and what is missing above it, each name made durable in its parent. So is the name of
/// the last one that is there, where its parent can be opened: a run that was killed may have made it. True
/// when the directory was not there before.
bool create_directories_durably(const std::filesystem::path& directory);
std::uint64_t free_disk_bytes(const std::filesystem::path& directory);

/// Raises the limit of open files as far as the system lets us. For programs: it concerns the whole process.
void raise_descriptor_limit();
/// How many files may be kept open for later: what the limit of this process leaves beside those in use at
/// any moment, at least 8 and at most 384. Who keeps files takes a fixed share of it.
std::size_t descriptor_budget();

/// "a directory", "a FIFO", "a device", "a socket"; "a file" for regular ones.
std::string_view name_of(std::filesystem::file_type type);

/// Throws IoError unless there is a regular file; for files that a library opens by name.
void require_file(const std::filesystem::path& path);

/// Highest resident set of this process so far.
std::uint64_t peak_rss_bytes();

/// "cannot open X: No such file or directory" for the current errno.
[[noreturn]] void throw_errno(std::string_view what, const std::filesystem::path& path);

/// Hash of all bytes of a file. Throws IoError.
Hash128 hash_file(const std::filesystem::path& path, const CancelToken& cancel);

}  // namespace citysplat
