#pragma once

#include "core/file.hpp"
#include "io/bag/ros_messages.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::io {

/// A topic of a bag. The id is its place in the bag's list of channels, from 1 on.
struct BagChannel {
    std::uint16_t id;
    std::string topic;
    RosType type;
    bool latched = false;  ///< late subscribers get the last message, too: tf_static
};

/// The quality of service of a channel, as rosbag2 up to version 5 of its metadata writes it.
std::string qos_of(const BagChannel& channel);

enum class ChunkCompression { none, zstd };

/// Messages on their way into a file. Nothing here depends on the place in the file: chunks can be made by
/// several threads.
class McapChunk {
  public:
    /// `memory` is used again.
    explicit McapChunk(std::vector<std::byte> memory = {});

    /// Requires that no message came before.
    void add_channel(const BagChannel& channel);
    /// The message is what is appended to content() until end_message().
    void begin_message(const BagChannel& channel, std::uint32_t sequence, StampNs log_time_ns);
    std::vector<std::byte>& content() { return bytes_; }
    void end_message();
    bool empty() const { return messages_.empty(); }
    std::size_t size() const { return bytes_.size(); }

    /// Completes the record. Afterwards nothing may be added.
    void seal(ChunkCompression compression);
    /// Memory for another chunk.
    std::vector<std::byte> take_memory() { return std::move(bytes_); }

  private:
    friend class McapWriter;
    struct Message {
        std::uint16_t channel;
        std::uint64_t time_ns, offset;
    };

    std::vector<std::byte> bytes_;  ///< room for the head of the record, then its own records
    std::vector<std::byte> compressed_;
    std::size_t message_ = 0;  ///< where the present one begins
    std::vector<Message> messages_;
    std::uint64_t content_bytes_ = 0;
    ChunkCompression compression_ = ChunkCompression::none;
};

/// What a finished file holds.
struct McapSummary {
    std::uint64_t messages = 0, begin_ns = 0, end_ns = 0;
    std::map<std::uint16_t, std::uint64_t> channel_messages;
};

/// Writes an MCAP file from its beginning to its end. What was appended stays readable if the rest never
/// comes. From one thread at a time.
class McapWriter {
  public:
    /// `facts` become a record of metadata named "citysplat".
    McapWriter(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, std::string>>& facts);

    void append(const McapChunk& chunk);
    /// Completes the file and makes it durable.
    McapSummary finish(const std::vector<BagChannel>& channels);

  private:
    void write(std::span<const std::byte> bytes);

    File file_;
    std::uint64_t position_ = 0, chunks_ = 0;
    std::uint64_t metadata_at_ = 0, metadata_bytes_ = 0;
    std::vector<std::byte> chunk_indexes_;
    McapSummary summary_;
};

}  // namespace citysplat::io
