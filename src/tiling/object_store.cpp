#include "tiling/object_store.hpp"

#include "core/error.hpp"

#include <cstdio>
#include <set>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20;

}  // namespace

void ObjectStore::create_layout() const {
    fs::create_directories(paths_.temporary());
    fs::create_directories(paths_.shards());
    if (fs::exists(paths_.objects() / "ff")) return;
    fs::create_directories(paths_.objects());
    char name[3];
    for (unsigned i = 0; i < 256; ++i) {
        std::snprintf(name, sizeof name, "%02x", i);
        fs::create_directory(paths_.objects() / name);
    }
    sync_directory(paths_.objects());
    sync_directory(paths_.root());
}

void ObjectStore::clear_temporary() const {
    for (const auto& entry : fs::directory_iterator(paths_.temporary())) fs::remove_all(entry.path());
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

ObjectStore::Writer ObjectStore::create() {
    std::uint64_t number;
    {
        const std::lock_guard lock(mutex_);
        number = created_++;
    }
    return Writer(*this, paths_.temporary() / (std::to_string(::getpid()) + "-" +
                                               std::to_string(reinterpret_cast<std::uintptr_t>(this)) + "-" +
                                               std::to_string(number)));
}

std::size_t ObjectStore::pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
}

void ObjectStore::flush() {
    std::vector<Pending> batch;
    {
        const std::lock_guard lock(mutex_);
        batch.swap(pending_);
    }
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
    const File file = open(hash, "an object");
    std::vector<std::byte> buffer(kReadBytes);
    Hasher hasher;
    for (std::uint64_t at = 0;;) {
        const std::size_t got = file.read_some_at(at, buffer);
        hasher.bytes(std::span(buffer).first(got));
        at += got;
        if (got < buffer.size()) break;
    }
    return hasher.finish() == hash;
}

void ObjectStore::remove(const Hash128& hash) const {
    const fs::path path = paths_.object(hash);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_errno("cannot remove", path);
}

void ObjectStore::for_each(const std::function<void(const Hash128&, std::uint64_t)>& visit) const {
    if (!fs::exists(paths_.objects())) return;
    for (const auto& directory : fs::directory_iterator(paths_.objects())) {
        if (!directory.is_directory()) continue;
        for (const auto& entry : fs::directory_iterator(directory.path()))
            if (const auto hash = Hash128::from_hex(entry.path().filename().string()))
                visit(*hash, entry.file_size());
    }
}

}  // namespace citysplat::tiling
