#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace citysplat::sim {

/// Files that threads of their own write while others make the next ones.
///
/// Protocol. Who has files to write takes a block of memory, fills it and puts it into the queue under the
/// names of the files in it; a thread of the queue writes each as an OutputFile and keeps the block for the
/// next taker. Blocks that are being filled, waiting or kept count against the budget: take() first lets kept
/// blocks go and then waits until a file is written. A block beyond the budget is given when there is no
/// other, so that every file can be written. The first failure ends the queue: the files behind it are not
/// written, and take(), put() and finish() throw it.
///
/// take() and put() may be called from several threads; who waits in take() must hold no block.
class FileQueue {
  public:
    struct Options {
        std::uint64_t budget_bytes = std::uint64_t{32} << 20;
        unsigned threads = 1;
    };

    /// Memory for the content of files, without value until it is filled. Goes back to the queue with this,
    /// which must not outlive it.
    class Block {
      public:
        ~Block();
        Block(Block&& other) noexcept = default;
        Block& operator=(Block&&) = delete;

        std::byte* data() const { return memory_.data.get(); }
        std::size_t room() const { return memory_.room; }

      private:
        friend class FileQueue;
        struct Memory {
            std::unique_ptr<std::byte[]> data;
            std::size_t room = 0;
        };
        Block(FileQueue& queue, Memory memory) : queue_(queue), memory_(std::move(memory)) {}

        FileQueue& queue_;
        Memory memory_;
    };

    /// A file to be written; its content lies in the block it is put with.
    struct File {
        std::filesystem::path path;
        std::span<const std::byte> content;
    };

    explicit FileQueue(const Options& options);
    /// Files that nobody has begun to write are not written.
    ~FileQueue();
    FileQueue(const FileQueue&) = delete;
    FileQueue& operator=(const FileQueue&) = delete;

    /// A block with room for that many bytes.
    Block take(std::size_t bytes);
    void put(std::vector<File> files, Block block);
    /// The first `bytes` of the block become the file.
    void put(std::filesystem::path path, Block block, std::size_t bytes);
    /// Waits until all files are written.
    void finish();

    /// Highest number of bytes in blocks at a time so far, and bytes of files that are written.
    std::uint64_t peak_bytes() const;
    std::uint64_t written_bytes() const;

  private:
    using Memory = Block::Memory;
    struct Job {
        std::vector<File> files;
        Memory memory;
    };

    void run_writer();
    /// Called with the lock held, as those below.
    bool has_room(std::size_t bytes);
    void keep(Memory memory);
    void rethrow_failure() const;

    const Options options_;
    mutable std::mutex mutex_;
    std::condition_variable work_, progress_;
    std::deque<Job> jobs_;
    std::vector<Memory> kept_;
    std::uint64_t block_bytes_ = 0, peak_bytes_ = 0, written_bytes_ = 0;
    std::size_t being_written_ = 0;
    std::exception_ptr failure_;
    bool stop_ = false;
    std::vector<std::thread> writers_;  ///< last: they use the rest
};

}  // namespace citysplat::sim
