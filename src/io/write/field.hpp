#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

/// Columns of the files that we write. A table of fields is the one place that knows a column's name, type,
/// unit, meaning and how it is computed; LAS extra bytes, PLY and PCD properties and the documentation follow
/// from it.
namespace citysplat::io {

enum class FieldType : std::uint8_t { u8, u16, u32, i32, f32, f64 };

/// Its size, and what the formats call it.
struct TypeFacts {
    std::size_t bytes;
    std::uint8_t las;  ///< type of extra bytes
    const char* ply;
    char pcd;
};
constexpr TypeFacts facts_of(FieldType type) {
    constexpr TypeFacts kFacts[]{{1, 1, "uchar", 'U'}, {2, 3, "ushort", 'U'}, {4, 5, "uint", 'U'},
                                 {4, 6, "int", 'I'},   {4, 9, "float", 'F'},  {8, 10, "double", 'F'}};
    return kFacts[static_cast<std::size_t>(type)];
}

struct Field {
    const char* name;
    FieldType type;
    const char* unit;                  ///< empty: a number or a name
    const char* meaning;               ///< at most 32 bytes, for LAS
    double scale = 1.0, offset = 0.0;  ///< value = stored · scale + offset; LAS alone can say so
};

/// Appends the bytes of a number.
template <class T>
requires std::is_trivially_copyable_v<T>
void put(std::byte*& at, const T& value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
}

template <class T>
constexpr FieldType field_type() {
    if constexpr (std::is_enum_v<T>) return field_type<std::underlying_type_t<T>>();
    if constexpr (std::is_same_v<T, std::uint8_t>) return FieldType::u8;
    if constexpr (std::is_same_v<T, std::uint16_t>) return FieldType::u16;
    if constexpr (std::is_same_v<T, std::uint32_t>) return FieldType::u32;
    if constexpr (std::is_same_v<T, std::int32_t>) return FieldType::i32;
    if constexpr (std::is_same_v<T, float>) return FieldType::f32;
    if constexpr (std::is_same_v<T, double>) return FieldType::f64;
}

/// A field, and `get`, which makes its value of an item. The column has the type that `get` returns.
template <class Get>
struct FieldOf {
    const char* name;
    const char* unit;
    const char* meaning;
    Get get;
};
/// clang 14, which builds the fuzzers, does not find the type of an aggregate by itself.
template <class Get>
FieldOf(const char*, const char*, const char*, Get) -> FieldOf<Get>;

/// The fields of an item in the order of a record.
template <class Item, class... Get>
class FieldTable {
  public:
    static constexpr std::size_t kBytes = (sizeof(std::invoke_result_t<Get, const Item&>) + ... + 0);

    constexpr explicit FieldTable(FieldOf<Get>... fields) : fields_(fields...) {}

    constexpr std::array<Field, sizeof...(Get)> fields() const {
        return std::apply(
            [](const auto&... f) {
                return std::array<Field, sizeof...(Get)>{
                    Field{f.name, field_type<decltype(f.get(std::declval<const Item&>()))>(), f.unit,
                          f.meaning}...};
            },
            fields_);
    }
    void put(std::byte*& at, const Item& item) const {
        std::apply([&](const auto&... f) { (io::put(at, f.get(item)), ...); }, fields_);
    }

  private:
    std::tuple<FieldOf<Get>...> fields_;
};

template <class Item, class... Get>
constexpr FieldTable<Item, Get...> field_table(FieldOf<Get>... fields) {
    return FieldTable<Item, Get...>(fields...);
}

}  // namespace citysplat::io
