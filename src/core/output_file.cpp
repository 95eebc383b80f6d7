#include "core/output_file.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace citysplat {

namespace fs = std::filesystem;

namespace {

/// Where a file of that name really goes. A rename would replace a symbolic link instead of what it names,
/// and a device by a file.
fs::path destination(const fs::path& path) {
    std::error_code ec;
    fs::path real = path;
    if (fs::is_symlink(fs::symlink_status(path, ec))) {
        real = fs::weakly_canonical(path, ec);
        if (ec) throw IoError("cannot write " + path.string() + ": " + ec.message());
    }
    const fs::file_status status = fs::status(real, ec);
    if (fs::exists(status) && !fs::is_regular_file(status))
        throw IoError("cannot write " + path.string() + ": it is " + std::string(name_of(status.type())) +
                      ", not a file");
    return real;
}

[[noreturn]] void refuse_shared(const fs::path& path) {
    throw BusyError(path.string() + " is being written by another process; try again when it has ended");
}

/// Whether `path` is the name of the open file and of no other.
bool is_name_of(const fs::path& path, const File& file) {
    struct stat named {
    }, open{};
    return ::lstat(path.c_str(), &named) == 0 && ::fstat(file.descriptor(), &open) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/// For writing if that is allowed: NFS refuses an exclusive lock to who only reads. The remainder of another
/// user may still be removed by who may write its directory.
File open_remainder(const fs::path& partial) {
    try {
        return File(partial, File::Mode::update);
    } catch (const IoError&) {
        return File(partial, File::Mode::read);
    }
}

/// Removes the partial file of a writer that has ended. Who holds the lock of a file may remove its name, but
/// between the opening and the lock the writer may have ended well, and the name may be a third one's by now.
void remove_remainder(const fs::path& partial, const fs::path& path) {
    const File left = open_remainder(partial);
    // As below: without locks only the notice of two writers is lost.
    if (::flock(left.descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_shared(path);
    if (is_name_of(partial, left)) ::unlink(partial.c_str());
}

/// Creates the partial file, in place of one that nobody holds any more. A name that comes or goes between
/// two calls belongs to another writer that made progress: we look again. What fails for another reason fails
/// every time.
FileWriter create(const fs::path& partial, const fs::path& path, OutputFile::Buffering buffering) {
    constexpr int kAttempts = 100;
    for (int attempt = 1;; ++attempt) {
        try {
            if (fs::exists(fs::symlink_status(partial))) remove_remainder(partial, path);
            if (buffering == OutputFile::Buffering::none)
                return FileWriter(partial, File::Mode::create_new, 0);
            return FileWriter(partial, File::Mode::create_new);
        } catch (const IoError&) {
            if (attempt == kAttempts) throw;
        }
    }
}

/// Whether the file has lost its name: between its creation and its lock another writer may have taken it for
/// a remainder.
bool is_removed(const File& file) {
    struct stat status {};
    return ::fstat(file.descriptor(), &status) == 0 && status.st_nlink == 0;
}

}  // namespace

fs::path OutputFile::partial_of(const fs::path& path) {
    fs::path partial = path;
    partial += ".citysplat-partial";
    return partial;
}

OutputFile::OutputFile(const fs::path& path, Buffering buffering)
    : path_(destination(path)),
      partial_(partial_of(path_)),
      writer_(create(partial_, path_, buffering)),
      lock_(writer_.file().duplicate()) {
    // Some network file systems have no such locks; they only lose the notice of two writers.
    const bool shared = ::flock(lock_.descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (shared || is_removed(lock_)) refuse_shared(path_);
}

OutputFile::~OutputFile() {
    if (!committed_) ::unlink(partial_.c_str());
}

void OutputFile::commit(bool durable) {
    writer_.finish(durable);
    if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_errno("cannot rename to", path_);
    committed_ = true;
    lock_.close();
    if (durable) sync_directory(directory_of(path_));
}

}  // namespace citysplat
