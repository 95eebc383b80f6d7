#include "io/bag/mcap_writer.hpp"

#include "io/bag/crc32.hpp"
#include "io/bag/mcap_records.hpp"
#include "io/bag/zstd_block.hpp"

#include <algorithm>
#include <cassert>
#include <set>

namespace citysplat::io {

using namespace mcap;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::string_view kCompressionNames[]{"", "zstd"};
std::string_view name_of(ChunkCompression c) { return kCompressionNames[static_cast<std::size_t>(c)]; }

/// Of a chunk record that is not compressed: what stands before its own records.
constexpr std::size_t kChunkHeadBytes = kRecordHeadBytes + 3 * 8 + 4 + 4 + 8;

void put_schema(Bytes& out, RosType type) {
    const std::size_t begin = begin_record(out, Opcode::schema);
    put(out, static_cast<std::uint16_t>(static_cast<std::uint16_t>(type) + 1));
    put_text(out, name_of(type));
    put_text(out, "ros2msg");
    put_text(out, definition_of(type));
    end_record(out, begin);
}

void put_channel(Bytes& out, const BagChannel& channel) {
    const std::size_t begin = begin_record(out, Opcode::channel);
    put_all(out, channel.id, static_cast<std::uint16_t>(static_cast<std::uint16_t>(channel.type) + 1));
    put_text(out, channel.topic);
    put_text(out, "cdr");
    Bytes map;
    put_text(map, "offered_qos_profiles");
    put_text(map, qos_of(channel));
    put(out, static_cast<std::uint32_t>(map.size()));
    out.insert(out.end(), map.begin(), map.end());
    end_record(out, begin);
}

/// What stands before the records of a chunk.
struct ChunkHead {
    std::uint64_t begin_ns, end_ns, content_bytes;
    std::uint32_t crc;
    ChunkCompression compression;
    std::uint64_t stored_bytes;
};
Bytes head_bytes(const ChunkHead& head) {
    Bytes out;
    const std::size_t begin = begin_record(out, Opcode::chunk);
    put_all(out, head.begin_ns, head.end_ns, head.content_bytes, head.crc);
    put_text(out, name_of(head.compression));
    put(out, head.stored_bytes);
    store_le(out.data() + begin - 8, static_cast<std::uint64_t>(out.size() - begin) + head.stored_bytes);
    return out;
}

}  // namespace

std::string qos_of(const BagChannel& channel) {
    const std::string forever = "\n    sec: 9223372036\n    nsec: 854775807\n";
    return "- history: " + std::string(channel.latched ? "1\n  depth: 1" : "3\n  depth: 0") +
           "\n  reliability: 1\n  durability: " + (channel.latched ? "1" : "2") + "\n  deadline:" + forever +
           "  lifespan:" + forever + "  liveliness: 1\n  liveliness_lease_duration:" + forever +
           "  avoid_ros_namespace_conventions: false";
}

McapChunk::McapChunk(Bytes memory) : bytes_(std::move(memory)) { bytes_.resize(kChunkHeadBytes); }

void McapChunk::add_channel(const BagChannel& channel) {
    assert(messages_.empty());
    put_schema(bytes_, channel.type);
    put_channel(bytes_, channel);
}

void McapChunk::begin_message(const BagChannel& channel, std::uint32_t sequence, StampNs log_time_ns) {
    const auto time_ns = static_cast<std::uint64_t>(log_time_ns);
    messages_.push_back({channel.id, time_ns, bytes_.size() - kChunkHeadBytes});
    message_ = begin_record(bytes_, Opcode::message);
    put_all(bytes_, channel.id, sequence, time_ns, time_ns);
}

void McapChunk::end_message() { end_record(bytes_, message_); }

void McapChunk::seal(ChunkCompression compression) {
    assert(!messages_.empty());
    const auto content = std::span<const std::byte>(bytes_).subspan(kChunkHeadBytes);
    const auto [first, last] =
        std::minmax_element(messages_.begin(), messages_.end(),
                            [](const Message& a, const Message& b) { return a.time_ns < b.time_ns; });
    content_bytes_ = content.size();
    compression_ = compression;
    ChunkHead head{first->time_ns, last->time_ns, content.size(),
                   crc32(content), compression,   content.size()};
    if (compression == ChunkCompression::none) {
        const Bytes bytes = head_bytes(head);
        assert(bytes.size() == kChunkHeadBytes);
        std::copy(bytes.begin(), bytes.end(), bytes_.begin());
        return;
    }
    const Bytes packed = compress_zstd(content);
    head.stored_bytes = packed.size();
    compressed_ = head_bytes(head);
    compressed_.insert(compressed_.end(), packed.begin(), packed.end());
}

McapWriter::McapWriter(const std::filesystem::path& path,
                       const std::vector<std::pair<std::string, std::string>>& facts)
    : file_(path, File::Mode::truncate) {
    write(std::as_bytes(std::span(kMagic)));
    Bytes out;
    std::size_t begin = begin_record(out, Opcode::header);
    put_text(out, "ros2");
    put_text(out, "citysplat");
    end_record(out, begin);
    metadata_at_ = position_ + out.size();
    begin = begin_record(out, Opcode::metadata);
    put_text(out, "citysplat");
    Bytes map;
    for (const auto& [key, value] : facts) put_text(map, key), put_text(map, value);
    put(out, static_cast<std::uint32_t>(map.size()));
    out.insert(out.end(), map.begin(), map.end());
    end_record(out, begin);
    write(out);
    metadata_bytes_ = position_ - metadata_at_;
}

void McapWriter::write(std::span<const std::byte> bytes) {
    file_.append(bytes);
    position_ += bytes.size();
}

void McapWriter::append(const McapChunk& chunk) {
    const Bytes& record = chunk.compression_ == ChunkCompression::none ? chunk.bytes_ : chunk.compressed_;
    const std::uint64_t chunk_at = position_;
    std::map<std::uint16_t, std::vector<const McapChunk::Message*>> by_channel;
    for (const McapChunk::Message& m : chunk.messages_) {
        by_channel[m.channel].push_back(&m);
        summary_.begin_ns = summary_.messages == 0 ? m.time_ns : std::min(summary_.begin_ns, m.time_ns);
        summary_.end_ns = std::max(summary_.end_ns, m.time_ns);
        ++summary_.messages;
        ++summary_.channel_messages[m.channel];
    }
    Bytes indexes, offsets;
    for (const auto& [channel, messages] : by_channel) {
        put_all(offsets, channel, chunk_at + record.size() + indexes.size());
        const std::size_t begin = begin_record(indexes, Opcode::message_index);
        put_all(indexes, channel, static_cast<std::uint32_t>(16 * messages.size()));
        for (const McapChunk::Message* m : messages) put_all(indexes, m->time_ns, m->offset);
        end_record(indexes, begin);
    }
    write(record);
    write(indexes);

    const auto time_at = [&record](std::size_t at) {
        return load_le<std::uint64_t>(record.data() + kRecordHeadBytes + at);
    };
    Bytes& out = chunk_indexes_;
    const std::size_t begin = begin_record(out, Opcode::chunk_index);
    put_all(out, time_at(0), time_at(8), chunk_at, std::uint64_t{record.size()},
            static_cast<std::uint32_t>(offsets.size()));
    out.insert(out.end(), offsets.begin(), offsets.end());
    put(out, std::uint64_t{indexes.size()});
    put_text(out, name_of(chunk.compression_));
    const std::uint64_t head_size = kChunkHeadBytes + name_of(chunk.compression_).size();
    put_all(out, record.size() - head_size, chunk.content_bytes_);
    end_record(out, begin);
    ++chunks_;
}

McapSummary McapWriter::finish(const std::vector<BagChannel>& channels) {
    Bytes data;
    std::size_t begin = begin_record(data, Opcode::data_end);
    put(data, std::uint32_t{0});  // no checksum of all that came before: chunks have their own
    end_record(data, begin);
    write(data);

    const std::uint64_t start = position_;
    Bytes out, offsets;
    const auto group = [&](Opcode opcode, const auto& fill) {
        const std::uint64_t at = start + out.size();
        fill();
        if (start + out.size() == at) return;
        const std::size_t record = begin_record(offsets, Opcode::summary_offset);
        put_all(offsets, opcode, at, start + out.size() - at);
        end_record(offsets, record);
    };
    std::set<RosType> types;
    for (const BagChannel& channel : channels) types.insert(channel.type);
    group(Opcode::schema, [&] {
        for (const RosType type : types) put_schema(out, type);
    });
    group(Opcode::channel, [&] {
        for (const BagChannel& channel : channels) put_channel(out, channel);
    });
    group(Opcode::statistics, [&] {
        const std::size_t record = begin_record(out, Opcode::statistics);
        put_all(out, summary_.messages, static_cast<std::uint16_t>(types.size()),
                static_cast<std::uint32_t>(channels.size()), std::uint32_t{0}, std::uint32_t{1},
                static_cast<std::uint32_t>(chunks_), summary_.begin_ns, summary_.end_ns,
                static_cast<std::uint32_t>(10 * summary_.channel_messages.size()));
        for (const auto& [channel, count] : summary_.channel_messages) put_all(out, channel, count);
        end_record(out, record);
    });
    group(Opcode::chunk_index, [&] { out.insert(out.end(), chunk_indexes_.begin(), chunk_indexes_.end()); });
    group(Opcode::metadata_index, [&] {
        const std::size_t record = begin_record(out, Opcode::metadata_index);
        put_all(out, metadata_at_, metadata_bytes_);
        put_text(out, "citysplat");
        end_record(out, record);
    });
    const std::uint64_t offsets_at = start + out.size();
    out.insert(out.end(), offsets.begin(), offsets.end());
    begin = begin_record(out, Opcode::footer);
    put_all(out, start, offsets_at);
    // The checksum covers the summary and the footer up to itself; the footer's length counts it.
    store_le(out.data() + begin - 8, std::uint64_t{20});
    put(out, crc32(out));
    out.insert(out.end(), reinterpret_cast<const std::byte*>(kMagic.data()),
               reinterpret_cast<const std::byte*>(kMagic.data()) + kMagic.size());
    write(out);
    file_.sync();
    file_.close();
    return summary_;
}

}  // namespace citysplat::io
