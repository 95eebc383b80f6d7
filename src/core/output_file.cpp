#include "core/output_file.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/file.h>
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

/// Creates the partial file, in place of one that nobody holds any more.
FileWriter create(const fs::path& partial, const fs::path& path, OutputFile::Buffering buffering) {
    for (int attempt = 0; fs::exists(fs::symlink_status(partial)); ++attempt) {
        const File left(partial, File::Mode::read);
        if (attempt == 3 || ::flock(left.descriptor(), LOCK_EX | LOCK_NB) != 0) refuse_shared(path);
        ::unlink(partial.c_str());
    }
    if (buffering == OutputFile::Buffering::none) return FileWriter(partial, File::Mode::create_new, 0);
    return FileWriter(partial, File::Mode::create_new);
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
    if (::flock(lock_.descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_shared(path_);
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
