#include "tiling/care/pack.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "tiling/care/catalog_copy.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/city_objects.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

constexpr std::array<char, 8> kMagic{'C', 'S', 'P', 'A', 'C', 'K', '1', '\n'};
constexpr std::size_t kCopyBytes = std::size_t{4} << 20;

struct Header {
    std::array<char, 8> magic;
    std::int64_t generation;
    std::uint64_t objects, catalog_bytes;
};
static_assert(sizeof(Header) == 32);

struct ObjectHeader {
    Hash128 name;
    std::uint64_t bytes;
};
static_assert(sizeof(ObjectHeader) == 24);

/// Appends with the hash of all that was appended.
class HashedOutput {
  public:
    explicit HashedOutput(FileWriter& file) : file_(file) {}
    void write(std::span<const std::byte> data) {
        file_.write(data);
        hasher_.bytes(data);
    }
    template <class T>
    void value(const T& v) {
        write(std::as_bytes(std::span(&v, 1)));
    }
    void finish() { value(hasher_.finish()); }

  private:
    FileWriter& file_;
    Hasher hasher_;
};

class HashedInput {
  public:
    explicit HashedInput(const fs::path& path) : file_(path, File::Mode::read) {}
    void read(std::span<std::byte> out) {
        if (file_.read_some_at(at_, out) != out.size())
            throw CorruptionError(file_.path().string() + " is cut off at byte " +
                                  std::to_string(file_.size()));
        hasher_.bytes(out);
        at_ += out.size();
    }
    template <class T>
    T value() {
        T v;
        read(std::as_writable_bytes(std::span(&v, 1)));
        return v;
    }
    void check_end() {
        const Hash128 expected = hasher_.finish();
        if (value<Hash128>() != expected || at_ != file_.size()) damaged();
    }
    [[noreturn]] void damaged(const std::string& how = "its parts do not fit together") const {
        throw CorruptionError(file_.path().string() + " is damaged: " + how + "; copy it again");
    }
    std::uint64_t position() const { return at_; }
    std::uint64_t left() const { return file_.size() - at_; }

  private:
    File file_;
    Hasher hasher_;
    std::uint64_t at_ = 0;
};

/// The catalog of a pack while it is made, beside the partial file of the pack, whose lock protects it. It
/// goes away with the object; what a killed process left of it goes first.
class ScratchCatalog {
  public:
    explicit ScratchCatalog(const OutputFile& pack) : path_(pack.partial().string() + "-catalog") {
        remove();
    }
    ~ScratchCatalog() { remove(); }
    ScratchCatalog(const ScratchCatalog&) = delete;
    ScratchCatalog& operator=(const ScratchCatalog&) = delete;
    const fs::path& path() const { return path_; }

  private:
    void remove() const {
        ::unlink(path_.c_str());
        ::unlink((path_.string() + "-journal").c_str());
    }
    const fs::path path_;
};

/// A catalog with one generation and nothing else.
std::vector<std::byte> single_generation_catalog(Catalog& from, const GenerationRow& generation,
                                                 const fs::path& scratch) {
    copy_generations(from, std::span(&generation, 1), scratch);
    return read_file(scratch);
}

void pack_object(const ObjectStore& store, const Hash128& object, const std::string& what,
                 HashedOutput& out) {
    const File file = store.open(object, what);
    const std::uint64_t size = file.size();
    out.value(ObjectHeader{object, size});
    std::vector<std::byte> buffer(kCopyBytes);
    Hasher hasher;
    for (std::uint64_t at = 0; at < size;) {
        const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - at));
        file.read_at(at, part);
        hasher.bytes(part);
        out.write(part);
        at += part.size();
    }
    if (hasher.finish() != object)
        throw CorruptionError(what + " is damaged (object " + object.hex() +
                              "); citysplat verify --deep lists all damage");
}

void unpack_object(HashedInput& in, ObjectStore& store) {
    const auto header = in.value<ObjectHeader>();
    if (header.bytes > in.left())
        in.damaged("object " + header.name.hex() + " is longer than the rest of the file");
    auto writer = store.create();
    std::vector<std::byte> buffer(kCopyBytes);
    for (std::uint64_t left = header.bytes; left > 0;) {
        const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), left));
        in.read(part);
        writer.append(part);
        left -= part.size();
    }
    if (writer.finish() != header.name)
        in.damaged("object " + header.name.hex() + " does not match its name");
}

void write_new_file(const fs::path& path, std::span<const std::byte> bytes) {
    File file(path, File::Mode::create_new);
    file.append(bytes);
    file.sync();
    file.close();
}

/// Throws unless `file` can be created: nothing of anybody else's is replaced.
void refuse_target(const fs::path& file, const PackOptions& options) {
    if (!fs::is_directory(directory_of(file)))
        throw UsageError("cannot write " + file.string() + ": there is no directory " +
                         directory_of(file).string());
    if (!fs::exists(fs::symlink_status(file))) return;
    if (!fs::is_regular_file(file))
        throw UsageError("cannot write " + file.string() + ": it exists and is not a file");
    if (!options.overwrite)
        throw UsageError(file.string() + " exists; --overwrite replaces it when it is a packed city");
    std::array<char, 8> magic{};
    File(file, File::Mode::read).read_some_at(0, std::as_writable_bytes(std::span(magic)));
    if (magic != kMagic) throw UsageError(file.string() + " exists and is not a packed city");
}

/// Takes a new or empty directory, or one in which an earlier unpack was killed, and marks it, durably.
void begin_unpacking(const CityPaths& paths) {
    const CityState state = state_of(paths);
    if (state == CityState::city)
        throw UsageError(paths.root().string() + " is a city already; unpack into a new directory");
    if (state == CityState::foreign || state == CityState::lost_catalog)
        throw UsageError(paths.root().string() + " is not empty; unpack into a new directory");
    create_directories_durably(paths.root());
    if (paths.is_unpacking()) return;
    write_new_file(paths.unpacking(), {});
    sync_directory(paths.root());
}

/// The catalog comes last and must be what the objects say.
void unpack_catalog(HashedInput& in, const Header& header, const ObjectStore& store) {
    if (header.catalog_bytes > in.left()) in.damaged();
    std::vector<std::byte> bytes(header.catalog_bytes);
    in.read(bytes);
    in.check_end();
    const CityPaths& paths = store.paths();
    const fs::path temporary = paths.new_temporary();
    write_new_file(temporary, bytes);
    {
        Catalog catalog = Catalog::open_to_read(temporary);
        const auto latest = catalog.latest();
        if (!latest) in.damaged();
        check_rows(catalog, store, *latest);
        require_objects(catalog, store, *latest);
    }
    install_catalog(temporary, paths);
    fs::remove(paths.unpacking());
    sync_directory(paths.root());
}

}  // namespace

PackReport pack_city(const fs::path& city, const fs::path& file, const CancelToken& cancel,
                     Progress& progress, const PackOptions& options) {
    const CityReader pinned(city, options.generation);
    refuse_target(file, options);
    const ObjectStore store{CityPaths(city)};
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    OutputFile pack(file);
    const ScratchCatalog scratch(pack);
    GenerationRow generation = pinned.generation();
    std::vector<std::byte> catalog_bytes;
    {
        // One moment of the city: a touched input gives the latest generation other rows and another record.
        const Transaction reading = catalog.reading();
        const auto now = catalog.generation(generation.id);
        if (!now)
            throw BusyError(city.string() + ": generation " + std::to_string(generation.id) +
                            " has left the catalog meanwhile; pack again");
        generation = *now;
        catalog_bytes = single_generation_catalog(catalog, generation, scratch.path());
    }
    const auto objects = objects_of(catalog, generation);
    PackReport report{generation.id, objects.size(), 0};
    HashedOutput out(pack.writer());
    out.value(Header{kMagic, generation.id, objects.size(), catalog_bytes.size()});
    Progress::Stage stage(progress, "pack", objects.size(), "objects");
    for (const auto& [object, needed] : objects) {
        cancel.check();
        pack_object(store, object, needed.what, out);
        stage.advance(1);
    }
    out.write(catalog_bytes);
    out.finish();
    report.bytes = pack.writer().position();
    pack.commit(true);
    return report;
}

PackReport unpack_city(const fs::path& file, const fs::path& city, const CancelToken& cancel,
                       Progress& progress) {
    HashedInput in(file);
    if (in.left() < sizeof(Header)) throw InputError(file.string() + " is not a packed city");
    const auto header = in.value<Header>();
    if (header.magic != kMagic) throw InputError(file.string() + " is not a packed city");
    ObjectStore store{CityPaths(city)};
    begin_unpacking(store.paths());
    const CityLock lock = CityLock::builder(store.paths(), "unpack");
    // Again, now that nobody else can: a city that was made meanwhile is not ours to undo.
    begin_unpacking(store.paths());
    try {
        store.create_layout();
        store.clear_temporary();
        // Objects that become durable together hold their files open until then.
        const std::size_t batch = std::clamp<std::size_t>(descriptor_budget() / 4, 1, 64);
        Progress::Stage stage(progress, "unpack", header.objects, "objects");
        for (std::uint64_t i = 0; i < header.objects; ++i) {
            cancel.check();
            unpack_object(in, store);
            if (store.pending() >= batch) store.flush();
            stage.advance(1);
        }
        store.flush();
        unpack_catalog(in, header, store);
    } catch (...) {
        // First the catalog, which may be there when the last fsync failed: without objects it is no city.
        ::unlink(store.paths().catalog().c_str());
        store.remove_layout();
        throw;
    }
    return {header.generation, header.objects, in.position()};
}

}  // namespace citysplat::tiling
