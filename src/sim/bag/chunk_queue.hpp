#pragma once

#include "io/bag/mcap_writer.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace citysplat::sim {

/// Appends chunks to a bag while others make the next ones.
///
/// Protocol. Who makes a chunk takes memory for it, which may be used or empty; put() hands it over, in the
/// order of the file, from one thread at a time, and waits while more than a few bytes wait. A thread of the
/// queue appends the chunks and keeps their memory. The first failure ends the queue: put() and finish()
/// throw it.
class ChunkQueue {
  public:
    explicit ChunkQueue(io::McapWriter& writer);
    /// Chunks that are not yet appended never are.
    ~ChunkQueue();
    ChunkQueue(const ChunkQueue&) = delete;
    ChunkQueue& operator=(const ChunkQueue&) = delete;

    std::vector<std::byte> take_memory();
    void put(io::McapChunk chunk);
    /// Waits until all chunks are appended. Nothing may be put afterwards.
    void finish();

  private:
    void run();

    io::McapWriter& writer_;
    std::mutex mutex_;
    std::condition_variable work_, progress_;
    std::deque<io::McapChunk> chunks_;
    std::size_t waiting_bytes_ = 0;
    std::vector<std::vector<std::byte>> memory_;
    std::exception_ptr failure_;
    bool busy_ = false, stop_ = false;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace citysplat::sim
