#pragma once

#include "core/error.hpp"
#include "tiling/store/catalog.hpp"
#include "tiling/store/object_store.hpp"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// How records are written: magic and version, then values one after the other, texts and lists with a u64
/// length in front (docs/formats.md).
namespace citysplat::tiling {

class RecordWriter {
  public:
    RecordWriter(ObjectKind kind, std::uint32_t version) { put(magic_of(kind)).put(version); }

    template <class T>
    requires std::is_trivially_copyable_v<T> RecordWriter& put(const T& value) {
        append(std::as_bytes(std::span(&value, 1)));
        return *this;
    }
    RecordWriter& put(const std::string& text) {
        put(static_cast<std::uint64_t>(text.size()));
        append(std::as_bytes(std::span(text.data(), text.size())));
        return *this;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

    /// Hands the record to the store's next batch.
    Hash128 write(ObjectStore& store) const;

  private:
    void append(std::span<const std::byte> bytes);

    std::vector<std::byte> bytes_;
};

/// Reads a record whose bytes match its name. Throws CorruptionError when it is cut off or damaged,
/// ConfigError when its version is newer than `newest`.
class RecordReader {
  public:
    RecordReader(const ObjectStore& store, const Hash128& object, const std::string& what,
                 std::uint32_t newest);
    RecordReader(RecordReader&&) = default;  // what is left points into the bytes, which move along
    RecordReader(const RecordReader&) = delete;

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
    std::uint32_t version() const { return version_; }
    /// A number of things of at least `bytes` each: never more than the rest can hold.
    std::size_t count(std::size_t bytes) {
        std::uint64_t n;
        get(n);
        if (n > rest_.size() / bytes) damaged();
        return static_cast<std::size_t>(n);
    }
    [[noreturn]] void damaged() const { throw CorruptionError(what_ + " is damaged"); }

  private:
    std::span<const std::byte> take(std::size_t n) {
        if (n > rest_.size()) damaged();
        const auto front = rest_.first(n);
        rest_ = rest_.subspan(n);
        return front;
    }

    std::vector<std::byte> all_;
    std::span<const std::byte> rest_;
    std::string what_;
    std::uint32_t version_ = 0;
};

void put_tile(RecordWriter& out, const TileKey& tile);
TileKey get_tile(RecordReader& in);
/// In the form that records of generations of this version have.
void put_products(RecordWriter& out, std::span<const ProductRow> products, std::uint32_t version);
std::vector<ProductRow> get_products(RecordReader& in, std::uint32_t version);

}  // namespace citysplat::tiling
