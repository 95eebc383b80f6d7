#pragma once

#include "core/file.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::io {

/// A channel of an MCAP file, and what its messages are.
struct McapChannel {
    std::string topic, encoding, type, definition_encoding;
};

/// Where a message is: in a chunk, or in the file itself.
struct McapPlace {
    static constexpr std::size_t kNoChunk = static_cast<std::size_t>(-1);
    std::size_t chunk = kNoChunk;
    std::uint64_t offset = 0,
                  bytes = 0;  ///< of the serialised message, in the content of the chunk or in the file
};

struct McapMessage {
    std::uint16_t channel;
    std::uint64_t log_time_ns;
    McapPlace place;
    std::span<const std::byte> data;  ///< valid during the call
};

/// Reads an MCAP file from its beginning to its end; the indexes at the end, which may be missing or wrong,
/// are not needed. Chunks are checked by their checksum, and where the file counts its messages they must all
/// be there: a record whose opcode was damaged is passed over, as one of a kind that is not known. Everything
/// that a file claims is held against what it is; the InputError names the file, the record by its byte, and
/// the way out.
class McapReader {
  public:
    /// Looks through the records. With `salvage` a file may end anywhere, and chunks may be damaged; they are
    /// counted.
    McapReader(File file, bool salvage);

    const File& file() const { return file_; }
    const std::map<std::uint16_t, McapChannel>& channels() const { return channels_; }
    /// The record named "citysplat" that our bags have; empty: none.
    const std::map<std::string, std::string>& own_metadata() const { return own_metadata_; }
    std::uint64_t damaged_chunks() const { return damaged_chunks_; }
    bool complete() const { return complete_; }
    /// With `salvage`: messages that the file counts and that were not there.
    std::uint64_t missing_messages() const { return missing_messages_; }

    /// Calls `take` for all messages in the order of the file. Once only, before content().
    void for_each_message(const std::function<void(const McapMessage&)>& take);
    /// The bytes of a message. Any number of threads.
    std::vector<std::byte> content(const McapPlace& place) const;
    /// "drive.mcap: record at byte 4711".
    std::string name_of(const McapPlace& place) const;

  private:
    struct Chunk {
        std::uint64_t record, begin, stored_bytes, content_bytes;  ///< of the file
        std::uint32_t crc;
        bool zstd, lz4;
    };

    [[noreturn]] void fail(std::uint64_t record, const std::string& why) const;
    [[noreturn]] void refuse_compression(std::uint64_t record, const std::string& name) const;
    void find_records();
    bool ends_with_magic(std::uint64_t at) const;
    void read_statistics(std::uint64_t at);
    void count_messages(std::uint64_t seen);
    void take_chunk(std::uint64_t record, std::uint64_t bytes);
    Chunk read_chunk_head(std::uint64_t record, std::uint64_t bytes) const;
    std::vector<std::byte> read_chunk(const Chunk& chunk) const;
    void take_schema(std::span<const std::byte> content, std::uint64_t record);
    void take_channel(std::span<const std::byte> content, std::uint64_t record);
    void take_metadata(std::span<const std::byte> content, std::uint64_t record);
    void walk_chunk(std::size_t number, const std::function<void(const McapMessage&)>& take);

    File file_;
    bool salvage_, complete_ = false;
    std::vector<Chunk> chunks_;
    /// Records outside of chunks that matter, in their order with the chunks.
    struct Item {
        std::uint64_t record, bytes;
        std::uint8_t opcode;
        std::size_t chunk;
    };
    std::vector<Item> items_;
    std::map<std::uint16_t, std::pair<std::string, std::string>> schemas_;  ///< name and encoding
    std::map<std::uint16_t, McapChannel> channels_;
    std::map<std::string, std::string> own_metadata_;
    std::uint64_t damaged_chunks_ = 0, missing_messages_ = 0;
    /// What the summary counts, and where; nothing when it does not.
    struct Statistics {
        std::uint64_t record, messages;
        std::uint32_t metadata;
    };
    std::optional<Statistics> statistics_;
};

}  // namespace citysplat::io
