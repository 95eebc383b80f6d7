#pragma once

#include "io/bytes_le.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// MCAP, the container of rosbag2. A file is the magic, records, and the magic again. A record is an opcode,
/// the length of its content in 64 bits, and the content: numbers in little endian, texts with a length of 32
/// bits.
///
///   Header, Metadata, (Chunk, MessageIndex …) …, DataEnd, Schema …, Channel …, Statistics, ChunkIndex …,
///   MetadataIndex, SummaryOffset …, Footer
///
/// A chunk holds records of its own: here the schema and the channel of each of its messages, then the
/// messages, so that it can be read without the rest of the file.
namespace citysplat::io::mcap {

inline constexpr std::string_view kMagic{"\x89MCAP0\r\n", 8};

enum class Opcode : std::uint8_t {
    header = 1,
    footer = 2,
    schema = 3,
    channel = 4,
    message = 5,
    chunk = 6,
    message_index = 7,
    chunk_index = 8,
    attachment = 9,
    attachment_index = 10,
    statistics = 11,
    metadata = 12,
    metadata_index = 13,
    summary_offset = 14,
    data_end = 15
};
inline constexpr std::size_t kRecordHeadBytes = 9;

template <class T>
void put(std::vector<std::byte>& out, T value) {
    const std::size_t at = out.size();
    out.resize(at + sizeof value);
    store_le(out.data() + at, value);
}
template <class... T>
void put_all(std::vector<std::byte>& out, T... values) {
    (put(out, values), ...);
}
inline void put_text(std::vector<std::byte>& out, std::string_view text) {
    put(out, static_cast<std::uint32_t>(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), bytes, bytes + text.size());
}

/// Begins a record; end_record() with what it returns puts in the length.
inline std::size_t begin_record(std::vector<std::byte>& out, Opcode opcode) {
    put_all(out, opcode, std::uint64_t{0});
    return out.size();
}
inline void end_record(std::vector<std::byte>& out, std::size_t begin) {
    store_le(out.data() + begin - 8, static_cast<std::uint64_t>(out.size() - begin));
}

}  // namespace citysplat::io::mcap
