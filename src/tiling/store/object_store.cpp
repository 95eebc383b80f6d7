#include "tiling/store/object_store.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstdio>
#include <set>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20;

}  // namespace

void ObjectStore::create_layout() const {
    create_directories_durably(paths_.root());
    for (const fs::path& path : {paths_.temporary(), paths_.plans(), paths_.objects()})
        fs::create_directory(path);
    // All of them each time: copies by way of archives and object stores lose empty directories.
    char name[3];
    for (unsigned i = 0; i < 256; ++i) {
        std::snprintf(name, sizeof name, "%02x", i);
        fs::create_directory(paths_.objects() / name);
    }
    // Also when all were there: a run that was killed may have made them and not got here.
    sync_directory(paths_.objects());
    sync_directory(paths_.root());
}

void ObjectStore::clear_temporary(std::chrono::seconds living) const {
    auto now = fs::file_time_type::max();
    if (living.count() > 0) {
        const fs::path clock = paths_.new_temporary();
        { const File touched(clock, File::Mode::create_new); }
        now = fs::last_write_time(clock);  // by the clock of the file system
        fs::remove(clock);
    }
    for (const auto& entry : fs::directory_iterator(paths_.temporary()))
        if (entry.is_regular_file() && CityPaths::is_temporary_name(entry.path().filename().string())) {
            std::error_code gone;  // workers give their files other names, or remove them, at any moment
            const auto touched = fs::last_write_time(entry.path(), gone);
            if (!gone && (living.count() == 0 || now - touched > living)) fs::remove(entry.path());
        }
}

void ObjectStore::remove_layout() {
    {
        const std::lock_guard lock(mutex_);
        pending_.clear();
    }
    std::vector<Hash128> objects;
    for_each([&objects](const Hash128& object, std::uint64_t) { objects.push_back(object); });
    for (const Hash128& object : objects) remove(object);
    clear_temporary();
    std::error_code ignored;  // a directory that is not empty stays
    for (const auto& directory : fs::directory_iterator(paths_.objects()))
        fs::remove(directory.path(), ignored);
    for (const fs::path& path : {paths_.objects(), paths_.plans(), paths_.temporary(), paths_.unpacking(),
                                 paths_.lock(), paths_.root()})
        fs::remove(path, ignored);
}

ObjectStore::Writer::Writer(ObjectStore& store, const fs::path& path)
    : store_(&store), file_(path, File::Mode::create_new) {}

ObjectStore::Writer::~Writer() {
    if (file_.is_open()) ::unlink(file_.path().c_str());
}

void ObjectStore::Writer::append(std::span<const std::byte> data) {
    file_.append(data);
    hasher_.bytes(data);
    position_ += data.size();
}

Hash128 ObjectStore::Writer::finish() {
    const Hash128 hash = hasher_.finish();
    const std::lock_guard lock(store_->mutex_);
    store_->pending_.push_back({hash, std::move(file_)});
    return hash;
}

ObjectStore::Writer ObjectStore::create() { return Writer(*this, paths_.new_temporary()); }

std::size_t ObjectStore::pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
}

ObjectStore::~ObjectStore() { discard(pending_); }

void ObjectStore::discard(std::span<const Pending> batch) {
    for (const auto& [hash, file] : batch) ::unlink(file.path().c_str());
}

void ObjectStore::flush() {
    std::vector<Pending> batch;
    {
        const std::lock_guard lock(mutex_);
        batch.swap(pending_);
    }
    try {
        make_durable(batch);
    } catch (...) {
        // A full disk must not stay full of files that nobody will use. Those with a name have no other.
        discard(batch);
        throw;
    }
}

void ObjectStore::make_durable(std::span<Pending> batch) const {
    // First all data, then all names, then all directories: a journalling file system then commits the names
    // of a batch at once.
    for (auto& [hash, file] : batch) file.sync();
    std::set<fs::path> directories;
    for (auto& [hash, file] : batch) {
        const fs::path temporary = file.path(), name = paths_.object(hash);
        file.close();
        if (::rename(temporary.c_str(), name.c_str()) != 0) throw_errno("cannot rename to", name);
        directories.insert(name.parent_path());
    }
    for (const fs::path& directory : directories) sync_directory(directory);
}

std::optional<std::uint64_t> ObjectStore::size_of(const Hash128& hash) const {
    std::error_code error;
    const auto size = fs::file_size(paths_.object(hash), error);
    if (error) return std::nullopt;
    return size;
}

File ObjectStore::open(const Hash128& hash, std::string_view what) const {
    if (!size_of(hash))
        throw CorruptionError(std::string(what) + " is missing (object " + hash.hex() + " of " +
                              paths_.root().string() + "); run citysplat build to make it again");
    return File(paths_.object(hash), File::Mode::read);
}

bool ObjectStore::intact(const Hash128& hash) const {
    if (!size_of(hash)) return false;
    const File file = open(hash, "an object");
    std::vector<std::byte> buffer(kReadBytes);
    Hasher hasher;
    for (std::uint64_t at = 0;;) {
        const ssize_t got = ::pread(file.descriptor(), buffer.data(), buffer.size(), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EIO) return false;  // what the disk cannot give back is damaged
        if (got < 0) throw_errno("cannot read", file.path());
        if (got == 0) break;
        hasher.bytes(std::span(buffer).first(static_cast<std::size_t>(got)));
        at += static_cast<std::uint64_t>(got);
    }
    return hasher.finish() == hash;
}

std::optional<ObjectKind> ObjectStore::kind_of(const Hash128& hash) const {
    if (!size_of(hash)) return std::nullopt;
    const File file(paths_.object(hash), File::Mode::read);
    try {
        return tiling::kind_of(file);
    } catch (const IoError&) {
        return std::nullopt;  // a bad place of the disk; verify and repair name it
    }
}

void ObjectStore::remove(const Hash128& hash) const {
    const fs::path path = paths_.object(hash);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_errno("cannot remove", path);
}

void ObjectStore::set_aside(const Hash128& hash) const {
    create_directories_durably(paths_.damaged());
    const fs::path from = paths_.object(hash), to = paths_.damaged() / hash.hex();
    if (::rename(from.c_str(), to.c_str()) != 0) throw_errno("cannot set aside", from);
    sync_directory(paths_.damaged());
    sync_directory(from.parent_path());
}

void ObjectStore::for_each(const std::function<void(const Hash128&, std::uint64_t)>& visit) const {
    for_each_until([&](const Hash128& hash, std::uint64_t bytes) {
        visit(hash, bytes);
        return false;
    });
}

bool ObjectStore::holds_objects() const {
    return for_each_until([this](const Hash128& hash, std::uint64_t) { return kind_of(hash).has_value(); });
}

bool ObjectStore::for_each_until(const std::function<bool(const Hash128&, std::uint64_t)>& visit) const {
    if (!fs::is_directory(paths_.objects())) return false;
    for (const auto& directory : fs::directory_iterator(paths_.objects())) {
        if (!directory.is_directory()) continue;
        const std::string prefix = directory.path().filename().string();
        for (const auto& entry : fs::directory_iterator(directory.path())) {
            const std::string name = entry.path().filename().string();
            const auto hash = Hash128::from_hex(name);
            if (!hash || !name.starts_with(prefix) || !entry.is_regular_file() || entry.is_symlink())
                continue;
            std::error_code gone;  // gc may remove it at this moment
            const std::uint64_t bytes = entry.file_size(gone);
            if (!gone && visit(*hash, bytes)) return true;
        }
    }
    return false;
}

}  // namespace citysplat::tiling
