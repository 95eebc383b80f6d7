#include "io/bag/mcap_reader.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "io/bag/crc32.hpp"
#include "io/bag/mcap_records.hpp"
#include "io/bag/zstd_block.hpp"

#include <cstring>

namespace citysplat::io {

using namespace mcap;

namespace {

/// No chunk of a writer comes near it; a damaged one must not take all memory.
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 30;
/// Of records that are neither chunks nor messages.
constexpr std::uint64_t kMostSmallBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMessageHeadBytes = 2 + 4 + 8 + 8;

/// The content of a record, field by field. False, once and for all, when it is too short.
class Fields {
  public:
    explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <class T>
    T number() {
        T value{};
        if (const auto from = take(sizeof value); !from.empty()) value = load_le<T>(from.data());
        return value;
    }
    std::string text() {
        const auto bytes = take(number<std::uint32_t>());
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::span<const std::byte> take(std::uint64_t bytes) {
        if (bytes > bytes_.size()) good_ = false;
        if (!good_) return {};
        const auto part = bytes_.first(static_cast<std::size_t>(bytes));
        bytes_ = bytes_.subspan(part.size());
        return part;
    }
    bool good() const { return good_; }
    bool empty() const { return bytes_.empty(); }

  private:
    std::span<const std::byte> bytes_;
    bool good_ = true;
};

bool is_small(Opcode opcode) {
    return opcode == Opcode::schema || opcode == Opcode::channel || opcode == Opcode::metadata;
}

}  // namespace

McapReader::McapReader(File file, bool salvage) : file_(std::move(file)), salvage_(salvage) {
    find_records();
}

void McapReader::fail(std::uint64_t record, const std::string& why) const {
    throw InputError(file_.path().string() + ": record at byte " + std::to_string(record) + ": " + why);
}

std::string McapReader::name_of(const McapPlace& place) const {
    const bool inside = place.chunk != McapPlace::kNoChunk;
    const std::uint64_t byte = inside ? chunks_[place.chunk].record : place.offset;
    return file_.path().string() + (inside ? ": chunk at byte " : ": message at byte ") +
           std::to_string(byte);
}

void McapReader::find_records() {
    const std::uint64_t size = file_.size();
    std::byte magic[8]{};
    if (file_.read_some_at(0, magic) < 8 || std::memcmp(magic, kMagic.data(), 8) != 0)
        throw InputError(file_.path().string() + ": byte 0: not an MCAP file; expected its magic");
    std::uint64_t at = 8;
    std::uint32_t metadata_records = 0;
    while (at + kRecordHeadBytes <= size) {
        std::byte head[kRecordHeadBytes];
        file_.read_at(at, head);
        const auto opcode = static_cast<Opcode>(head[0]);
        const auto bytes = load_le<std::uint64_t>(head + 1);
        if (!fits(at + kRecordHeadBytes, bytes, size)) break;
        if (opcode == Opcode{0}) fail(at, "has the opcode 0, which no record has; the file is damaged here");
        if (opcode == Opcode::footer && !ends_with_magic(at + kRecordHeadBytes + bytes)) {
            if (!salvage_)
                fail(at,
                     "is the last one of a file, in the middle of it: it is damaged here; --salvage reads "
                     "the others");
        } else if (opcode == Opcode::data_end || opcode == Opcode::footer) {
            complete_ = true;
            if (opcode == Opcode::data_end) read_statistics(at + kRecordHeadBytes + bytes);
            if (statistics_ && !salvage_ && metadata_records != statistics_->metadata)
                fail(statistics_->record, "the file counts " + std::to_string(statistics_->metadata) +
                                              " records of metadata, and has " +
                                              std::to_string(metadata_records) +
                                              "; it is damaged, --salvage reads what is there");
            return;
        }
        if (opcode == Opcode::chunk) {
            take_chunk(at, bytes);
        } else if (opcode == Opcode::message || is_small(opcode)) {
            if (bytes > (opcode == Opcode::message ? kMostChunkBytes : kMostSmallBytes))
                fail(at, "claims " + format_bytes(bytes) + ", more than any such record has");
            if (opcode == Opcode::metadata) {
                std::vector<std::byte> content(static_cast<std::size_t>(bytes));
                file_.read_at(at + kRecordHeadBytes, content);
                take_metadata(content, at);
                ++metadata_records;
            } else {
                items_.push_back({at, bytes, static_cast<std::uint8_t>(opcode), McapPlace::kNoChunk});
            }
        }
        at += kRecordHeadBytes + bytes;
    }
    if (!salvage_)
        fail(at,
             "the file ends here, before the end of its data: it was cut off, or is still being written; "
             "--salvage reads "
             "what is whole");
}

/// The magic stands behind the footer, and nowhere else but at the beginning.
bool McapReader::ends_with_magic(std::uint64_t at) const {
    std::byte magic[8]{};
    return file_.read_some_at(at, magic) == 8 && std::memcmp(magic, kMagic.data(), 8) == 0;
}

/// From the summary, which begins at `at` and may be anything: what is no record of statistics is passed
/// over.
void McapReader::read_statistics(std::uint64_t at) {
    constexpr std::size_t kBytes = 8 + 2 + 4 + 4 + 4 + 4;
    for (std::byte head[kRecordHeadBytes + kBytes]; fits(at, sizeof head, file_.size());) {
        file_.read_at(at, head);
        const auto bytes = load_le<std::uint64_t>(head + 1);
        if (static_cast<Opcode>(head[0]) == Opcode::footer ||
            !fits(at + kRecordHeadBytes, bytes, file_.size()))
            return;
        if (static_cast<Opcode>(head[0]) == Opcode::statistics && bytes >= kBytes) {
            const std::byte* content = head + kRecordHeadBytes;
            statistics_ = {at, load_le<std::uint64_t>(content), load_le<std::uint32_t>(content + 18)};
            return;
        }
        at += kRecordHeadBytes + bytes;
    }
}

void McapReader::count_messages(std::uint64_t seen) {
    if (!statistics_ || seen == statistics_->messages) return;
    if (!salvage_)
        fail(statistics_->record, "the file counts " + format_count(statistics_->messages) +
                                      " messages, and has " + format_count(seen) +
                                      "; it is damaged, --salvage reads what is there");
    missing_messages_ = statistics_->messages - std::min(seen, statistics_->messages);
}

void McapReader::take_chunk(std::uint64_t record, std::uint64_t bytes) {
    Chunk chunk{};
    try {
        chunk = read_chunk_head(record, bytes);
    } catch (const InputError&) {
        if (!salvage_) throw;
        ++damaged_chunks_;
        return;
    }
    if (chunk.lz4) refuse_compression(record, "lz4");  // is not damage: nothing of such a bag can be salvaged
    items_.push_back({record, bytes, static_cast<std::uint8_t>(Opcode::chunk), chunks_.size()});
    chunks_.push_back(chunk);
}

void McapReader::refuse_compression(std::uint64_t record, const std::string& name) const {
    fail(record, "is compressed by \"" + printable(name) +
                     "\", which is not read; `mcap compress --compression zstd` writes it anew");
}

McapReader::Chunk McapReader::read_chunk_head(std::uint64_t record, std::uint64_t bytes) const {
    // Three numbers, a checksum, the name of the compression and a length.
    std::vector<std::byte> head(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 28 + 4 + 16 + 8)));
    file_.read_at(record + kRecordHeadBytes, head);
    Fields fields(head);
    fields.take(16);
    Chunk chunk{};
    chunk.record = record;
    chunk.content_bytes = fields.number<std::uint64_t>();
    chunk.crc = fields.number<std::uint32_t>();
    const std::string compression = fields.text();
    chunk.stored_bytes = fields.number<std::uint64_t>();
    if (!fields.good())
        fail(record, "is too short for a chunk, or its compression has a name of many letters");
    chunk.zstd = compression == "zstd", chunk.lz4 = compression == "lz4";
    if (chunk.lz4) return chunk;
    if (!compression.empty() && !chunk.zstd) refuse_compression(record, compression);
    chunk.begin = record + kRecordHeadBytes + 28 + 4 + compression.size() + 8;
    if (!fits(chunk.begin, chunk.stored_bytes, record + kRecordHeadBytes + bytes))
        fail(record,
             "claims " + std::to_string(chunk.stored_bytes) + " bytes of records, more than the chunk has");
    if (chunk.content_bytes > kMostChunkBytes)
        fail(record, "claims " + format_bytes(chunk.content_bytes) + " of records, more than any chunk has");
    if (compression.empty() && chunk.content_bytes != chunk.stored_bytes)
        fail(record, "is not compressed, and yet says that " + std::to_string(chunk.stored_bytes) +
                         " bytes become " + std::to_string(chunk.content_bytes));
    return chunk;
}

std::vector<std::byte> McapReader::read_chunk(const Chunk& chunk) const {
    std::vector<std::byte> stored(static_cast<std::size_t>(chunk.stored_bytes));
    file_.read_at(chunk.begin, stored);
    std::vector<std::byte> content;
    if (chunk.zstd) {
        content.resize(static_cast<std::size_t>(chunk.content_bytes));
        if (!decompress_zstd(stored, content))
            fail(chunk.record, "the chunk cannot be decompressed; --salvage leaves it out");
    } else {
        content = std::move(stored);
    }
    // A checksum of 0 says that there is none.
    if (chunk.crc != 0 && crc32(content) != chunk.crc)
        fail(chunk.record, "the chunk does not have its checksum; --salvage leaves it out");
    return content;
}

void McapReader::take_schema(std::span<const std::byte> content, std::uint64_t record) {
    Fields fields(content);
    const auto id = fields.number<std::uint16_t>();
    const std::string name = fields.text(), encoding = fields.text();
    if (!fields.good()) fail(record, "a schema is too short for what it claims");
    schemas_[id] = {name, encoding};
}

void McapReader::take_channel(std::span<const std::byte> content, std::uint64_t record) {
    Fields fields(content);
    const auto id = fields.number<std::uint16_t>(), schema = fields.number<std::uint16_t>();
    const std::string topic = fields.text(), encoding = fields.text();
    if (!fields.good()) fail(record, "a channel is too short for what it claims");
    const auto found = schemas_.find(schema);
    McapChannel channel{topic, encoding, {}, {}};
    if (schema != 0) {
        if (found == schemas_.end())
            fail(record, "the channel \"" + printable(topic) + "\" names schema " + std::to_string(schema) +
                             ", which no record before it defines");
        channel.type = found->second.first, channel.definition_encoding = found->second.second;
    }
    const auto [before, fresh] = channels_.emplace(id, channel);
    if (!fresh && (before->second.topic != topic || before->second.type != channel.type))
        fail(record, "channel " + std::to_string(id) + " is \"" + printable(topic) + "\" here and was \"" +
                         printable(before->second.topic) + "\" before");
}

void McapReader::take_metadata(std::span<const std::byte> content, std::uint64_t record) {
    Fields fields(content);
    if (fields.text() != "citysplat") return;
    Fields map(fields.take(fields.number<std::uint32_t>()));
    while (fields.good() && map.good() && !map.empty()) {
        std::string key = map.text();
        own_metadata_[std::move(key)] = map.text();
    }
    if (!fields.good() || !map.good()) fail(record, "the metadata are too short for what they claim");
}

void McapReader::walk_chunk(std::size_t number, const std::function<void(const McapMessage&)>& take) {
    const Chunk& chunk = chunks_[number];
    const std::vector<std::byte> content = read_chunk(chunk);
    const auto all = std::span<const std::byte>(content);
    for (std::size_t at = 0; at < content.size();) {
        const std::size_t left = content.size() - at;
        const std::uint64_t bytes =
            left < kRecordHeadBytes ? 0 : load_le<std::uint64_t>(content.data() + at + 1);
        if (left < kRecordHeadBytes || bytes > left - kRecordHeadBytes)
            fail(chunk.record,
                 "in the chunk, the record at its byte " + std::to_string(at) + " is longer than the chunk");
        const auto opcode = static_cast<Opcode>(content[at]);
        const auto record = all.subspan(at + kRecordHeadBytes, static_cast<std::size_t>(bytes));
        if (opcode == Opcode::schema) take_schema(record, chunk.record);
        if (opcode == Opcode::channel) take_channel(record, chunk.record);
        if (opcode == Opcode::message) {
            Fields fields(record);
            const auto id = fields.number<std::uint16_t>();
            fields.number<std::uint32_t>();
            const auto log_ns = fields.number<std::uint64_t>();
            fields.number<std::uint64_t>();
            if (!fields.good() || !channels_.contains(id))
                fail(chunk.record, "in the chunk, the message at its byte " + std::to_string(at) +
                                       (fields.good() ? " is of channel " + std::to_string(id) +
                                                            ", which no record before it defines"
                                                      : " is too short"));
            take({id,
                  log_ns,
                  {number, at + kRecordHeadBytes + kMessageHeadBytes, bytes - kMessageHeadBytes},
                  record.subspan(kMessageHeadBytes)});
        }
        at += kRecordHeadBytes + record.size();
    }
}

void McapReader::for_each_message(const std::function<void(const McapMessage&)>& take_one) {
    std::uint64_t seen = 0;
    const std::function<void(const McapMessage&)> take = [&](const McapMessage& message) {
        ++seen;
        take_one(message);
    };
    for (const Item& item : items_) {
        if (item.chunk != McapPlace::kNoChunk) {
            // Under salvage a chunk is taken whole or not at all.
            try {
                if (salvage_) walk_chunk(item.chunk, [](const McapMessage&) {});
            } catch (const InputError&) {
                ++damaged_chunks_;
                continue;
            }
            walk_chunk(item.chunk, take);
            continue;
        }
        std::vector<std::byte> bytes(static_cast<std::size_t>(item.bytes));
        file_.read_at(item.record + kRecordHeadBytes, bytes);
        const auto opcode = static_cast<Opcode>(item.opcode);
        if (opcode == Opcode::schema) take_schema(bytes, item.record);
        if (opcode == Opcode::channel) take_channel(bytes, item.record);
        if (opcode != Opcode::message) continue;
        if (bytes.size() < kMessageHeadBytes) fail(item.record, "a message is too short");
        const auto id = load_le<std::uint16_t>(bytes.data());
        if (!channels_.contains(id))
            fail(item.record,
                 "a message is of channel " + std::to_string(id) + ", which no record before it defines");
        const std::uint64_t begin = item.record + kRecordHeadBytes + kMessageHeadBytes;
        take({id,
              load_le<std::uint64_t>(bytes.data() + 6),
              {McapPlace::kNoChunk, begin, item.bytes - kMessageHeadBytes},
              std::span<const std::byte>(bytes).subspan(kMessageHeadBytes)});
    }
    count_messages(seen);
}

std::vector<std::byte> McapReader::content(const McapPlace& place) const {
    if (place.chunk == McapPlace::kNoChunk) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(place.bytes));
        file_.read_at(place.offset, bytes);
        return bytes;
    }
    std::vector<std::byte> chunk = read_chunk(chunks_[place.chunk]);
    if (!fits(place.offset, place.bytes, chunk.size()))
        fail(chunks_[place.chunk].record, "the chunk has changed since the file was opened");
    const auto begin = chunk.begin() + static_cast<std::ptrdiff_t>(place.offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(place.bytes)};
}

}  // namespace citysplat::io
