#include "tiling/pack.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tiling/catalog.hpp"
#include "tiling/city_lock.hpp"
#include "tiling/city_reader.hpp"
#include "tiling/generation_record.hpp"
#include "tiling/object_store.hpp"

#include <array>
#include <map>
#include <set>
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
    explicit HashedOutput(const fs::path& path) : file_(path) {}
    void write(std::span<const std::byte> data) {
        file_.write(data);
        hasher_.bytes(data);
    }
    template <class T>
    void value(const T& v) {
        write(std::as_bytes(std::span(&v, 1)));
    }
    void finish() {
        value(hasher_.finish());
        file_.finish(true);
    }
    std::uint64_t position() const { return file_.position(); }

  private:
    FileWriter file_;
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
        if (value<Hash128>() != expected || at_ != file_.size())
            throw CorruptionError(file_.path().string() + " is damaged; copy it again");
    }
    std::uint64_t position() const { return at_; }
    std::uint64_t left() const { return file_.size() - at_; }

  private:
    File file_;
    Hasher hasher_;
    std::uint64_t at_ = 0;
};

/// A catalog with one generation and nothing else.
std::vector<std::byte> single_generation_catalog(Catalog& from, const GenerationRow& generation,
                                                 const fs::path& scratch) {
    fs::remove(scratch);
    Catalog::create(scratch);
    {
        Catalog to = Catalog::open_to_write(scratch);
        std::vector<InputRow> inputs = from.inputs(generation.id);
        std::vector<CitySource> sources;
        for (const InputRow& input : inputs)
            sources.push_back({from.source(input.source), from.segments(input.source)});
        const std::vector<std::int64_t> ids = to.add_sources(sources);
        for (std::size_t i = 0; i < ids.size(); ++i) inputs[i].source = ids[i];
        std::vector<ProductRow> tiles = from.tiles(generation.id);
        if (!tiles.empty()) to.add_products(tiles);
        to.publish(generation, inputs, tiles);
    }
    auto bytes = read_file(scratch);
    fs::remove(scratch);
    return bytes;
}

std::set<Hash128> objects_of(Catalog& catalog, const GenerationRow& generation) {
    std::set<Hash128> objects{generation.record};
    for (const InputRow& input : catalog.inputs(generation.id))
        objects.insert(catalog.source(input.source).object);
    for (const ProductRow& tile : catalog.tiles(generation.id))
        if (tile.object) objects.insert(*tile.object);
    return objects;
}

void pack_object(const ObjectStore& store, const Hash128& object, HashedOutput& out) {
    const File file = store.open(object, "object " + object.hex());
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
        throw CorruptionError("object " + object.hex() +
                              " is damaged; citysplat verify --deep names the tile");
}

void unpack_object(HashedInput& in, ObjectStore& store) {
    const auto header = in.value<ObjectHeader>();
    if (header.bytes > in.left())
        throw CorruptionError("the pack is damaged: an object is longer than the file");
    auto writer = store.create();
    std::vector<std::byte> buffer(kCopyBytes);
    for (std::uint64_t left = header.bytes; left > 0;) {
        const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), left));
        in.read(part);
        writer.append(part);
        left -= part.size();
    }
    if (writer.finish() != header.name)
        throw CorruptionError("the pack is damaged: object " + header.name.hex() +
                              " does not match its name");
}

}  // namespace

PackReport pack_city(const fs::path& city, const fs::path& file, const CancelToken& cancel,
                     Progress& progress) {
    const CityReader pinned(city);
    const GenerationRow& generation = pinned.generation();
    const ObjectStore store{CityPaths(city)};
    Catalog catalog = Catalog::open_to_read(store.paths().catalog());
    fs::path temporary = file;
    temporary += ".tmp-" + std::to_string(::getpid());
    const auto catalog_bytes = single_generation_catalog(catalog, generation, temporary);
    const auto objects = objects_of(catalog, generation);
    PackReport report{generation.id, objects.size(), 0};
    try {
        HashedOutput out(temporary);
        out.value(Header{kMagic, generation.id, objects.size(), catalog_bytes.size()});
        Progress::Stage stage(progress, "pack", objects.size(), "objects");
        for (const Hash128& object : objects) {
            cancel.check();
            pack_object(store, object, out);
            stage.advance(1);
        }
        out.write(catalog_bytes);
        out.finish();
        report.bytes = out.position();
        if (::rename(temporary.c_str(), file.c_str()) != 0) throw_errno("cannot rename to", file);
    } catch (...) {
        ::unlink(temporary.c_str());
        throw;
    }
    sync_directory(file.has_parent_path() ? file.parent_path() : fs::path("."));
    return report;
}

PackReport unpack_city(const fs::path& file, const fs::path& city, const CancelToken& cancel,
                       Progress& progress) {
    HashedInput in(file);
    if (in.left() < sizeof(Header)) throw InputError(file.string() + " is not a packed city");
    const auto header = in.value<Header>();
    if (header.magic != kMagic) throw InputError(file.string() + " is not a packed city");
    if (fs::exists(city) && !fs::is_empty(city) && CityPaths(city).is_city())
        throw UsageError(city.string() + " is a city already; unpack into a new directory");
    fs::create_directories(city);
    ObjectStore store{CityPaths(city)};
    const CityLock lock = CityLock::builder(store.paths(), "unpack");
    store.create_layout();
    store.clear_temporary();
    Progress::Stage stage(progress, "unpack", header.objects, "objects");
    for (std::uint64_t i = 0; i < header.objects; ++i) {
        cancel.check();
        unpack_object(in, store);
        if (store.pending() >= 64) store.flush();
        stage.advance(1);
    }
    store.flush();
    if (header.catalog_bytes > in.left()) throw CorruptionError(file.string() + " is damaged; copy it again");
    std::vector<std::byte> catalog(header.catalog_bytes);
    in.read(catalog);
    in.check_end();
    write_file_atomically(store.paths().catalog(), catalog);
    Catalog::open_to_read(store.paths().catalog());
    return {header.generation, header.objects, in.position()};
}

}  // namespace citysplat::tiling
