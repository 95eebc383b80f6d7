#include "tiling/generation_record.hpp"

#include "core/error.hpp"

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

namespace citysplat::tiling {

namespace {

constexpr std::array<char, 8> kMagic{'C', 'S', 'G', 'E', 'N', 'E', 'R', '\n'};
constexpr std::uint32_t kVersion = 1;

class RecordWriter {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T> RecordWriter& put(const T& value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    RecordWriter& put(const std::string& text) {
        put(static_cast<std::uint64_t>(text.size()));
        const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

class RecordReader {
  public:
    RecordReader(std::span<const std::byte> bytes, std::string what)
        : bytes_(bytes), what_(std::move(what)) {}
    template <class T>
    requires std::is_trivially_copyable_v<T> RecordReader& get(T& value) {
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return *this;
    }
    RecordReader& get(std::string& text) {
        const auto bytes = take(count(1));
        text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return *this;
    }
    /// A number of things of at least `bytes` each: never more than the rest can hold.
    std::size_t count(std::size_t bytes) {
        std::uint64_t n;
        get(n);
        if (n > bytes_.size() / bytes) damaged();
        return static_cast<std::size_t>(n);
    }

  private:
    std::span<const std::byte> take(std::size_t n) {
        if (n > bytes_.size()) damaged();
        const auto front = bytes_.first(n);
        bytes_ = bytes_.subspan(n);
        return front;
    }
    [[noreturn]] void damaged() const { throw CorruptionError(what_ + " is damaged"); }

    std::span<const std::byte> bytes_;
    std::string what_;
};

/// One list of fields for both directions.
template <class Row, class Each>
void generation_fields(Row& g, const Each& each) {
    each(g.id), each(g.created_s), each(g.note), each(g.tile_size_m), each(g.parameters_key),
        each(g.parameters);
    each(g.classes), each(g.crs), each(g.calibration), each(g.measured), each(g.points), each(g.tiles);
    each(g.splats), each(g.digest);
}

template <class Row, class Each>
void input_fields(Row& i, const Each& each) {
    each(i.row.path), each(i.row.trajectory), each(i.row.reading), each(i.row.stamp),
        each(i.row.trajectory_stamp), each(i.identity);
}

template <class Row, class Each>
void product_fields(Row& p, const Each& each) {
    each(p.key), each(p.core), each(p.tile), each(p.object_bytes), each(p.points), each(p.splats);
    each(p.halo_steps), each(p.digest), each(p.box);
}

}  // namespace

Hash128 write_record(ObjectStore& store, const GenerationRecord& record) {
    RecordWriter out;
    const auto put = [&out](const auto& value) { out.put(value); };
    out.put(kMagic).put(kVersion);
    generation_fields(record.generation, put);
    out.put(static_cast<std::uint64_t>(record.inputs.size()));
    for (const auto& input : record.inputs) input_fields(input, put);
    out.put(static_cast<std::uint64_t>(record.tiles.size()));
    for (const ProductRow& tile : record.tiles) {
        product_fields(tile, put);
        out.put(static_cast<std::uint8_t>(tile.object.has_value())).put(tile.object.value_or(Hash128{}));
    }
    auto writer = store.create();
    writer.append(out.bytes());
    return writer.finish();
}

std::optional<GenerationRecord> read_record(const ObjectStore& store, const Hash128& object) {
    const std::string what = "generation record " + object.hex();
    const File file = store.open(object, what);
    std::array<char, 8> magic{};
    file.read_some_at(0, std::as_writable_bytes(std::span(magic)));
    if (magic != kMagic) return std::nullopt;
    std::vector<std::byte> bytes(file.size());
    file.read_at(0, bytes);
    if (hash_bytes(bytes) != object) throw CorruptionError(what + " is damaged");
    RecordReader in(bytes, what);
    const auto get = [&in](auto& value) { in.get(value); };
    std::uint32_t version;
    in.get(magic).get(version);
    if (version != kVersion)
        throw ConfigError(what + " has version " + std::to_string(version) + "; this citysplat knows " +
                          std::to_string(kVersion));
    GenerationRecord record;
    generation_fields(record.generation, get);
    record.inputs.resize(in.count(sizeof(Hash128)));
    for (auto& input : record.inputs) input_fields(input, get);
    record.tiles.resize(in.count(sizeof(Hash128)));
    for (ProductRow& tile : record.tiles) {
        product_fields(tile, get);
        std::uint8_t has_object;
        Hash128 hash;
        in.get(has_object).get(hash);
        if (has_object) tile.object = hash;
    }
    record.generation.record = object;
    return record;
}

std::int64_t publish_generation(Catalog& catalog, ObjectStore& store, GenerationRow generation,
                                std::span<const InputRow> inputs, std::span<const ProductRow> tiles) {
    const auto latest = catalog.latest();
    generation.id = latest ? latest->id + 1 : 1;
    GenerationRecord record{generation, {}, {tiles.begin(), tiles.end()}};
    for (const InputRow& input : inputs)
        record.inputs.push_back({input, catalog.source(input.source).identity});
    generation.record = write_record(store, record);
    store.flush();
    catalog.publish(generation, inputs, tiles);
    return generation.id;
}

}  // namespace citysplat::tiling
