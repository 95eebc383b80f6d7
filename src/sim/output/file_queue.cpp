#include "sim/output/file_queue.hpp"

#include "core/output_file.hpp"

#include <algorithm>
#include <utility>

namespace citysplat::sim {

FileQueue::Block::~Block() {
    if (!memory_.data) return;
    const std::lock_guard lock(queue_.mutex_);
    queue_.keep(std::move(memory_));
}

FileQueue::FileQueue(const Options& options) : options_(options) {
    for (unsigned i = 0; i < std::max(1u, options.threads); ++i)
        writers_.emplace_back([this] { run_writer(); });
}

FileQueue::~FileQueue() {
    {
        const std::lock_guard lock(mutex_);
        jobs_.clear();
        stop_ = true;
    }
    work_.notify_all();
    for (std::thread& writer : writers_) writer.join();
}

void FileQueue::keep(Memory memory) {
    kept_.push_back(std::move(memory));
    progress_.notify_all();
}

void FileQueue::rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
}

bool FileQueue::has_room(std::size_t bytes) {
    while (block_bytes_ + bytes > options_.budget_bytes && !kept_.empty()) {
        block_bytes_ -= kept_.back().room;
        kept_.pop_back();
    }
    return block_bytes_ == 0 || block_bytes_ + bytes <= options_.budget_bytes;
}

FileQueue::Block FileQueue::take(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    for (;;) {
        rethrow_failure();
        const auto fitting =
            std::find_if(kept_.begin(), kept_.end(), [&](const Memory& m) { return m.room >= bytes; });
        if (fitting != kept_.end()) {
            Memory memory = std::move(*fitting);
            kept_.erase(fitting);
            return Block(*this, std::move(memory));
        }
        if (has_room(bytes)) break;
        progress_.wait(lock);
    }
    Memory memory{std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    block_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, block_bytes_);
    return Block(*this, std::move(memory));
}

void FileQueue::put(std::vector<File> files, Block block) {
    {
        const std::lock_guard lock(mutex_);
        rethrow_failure();
        jobs_.push_back({std::move(files), std::move(block.memory_)});
    }
    work_.notify_one();
}

void FileQueue::put(std::filesystem::path path, Block block, std::size_t bytes) {
    const std::span<const std::byte> content(block.data(), bytes);
    put({{std::move(path), content}}, std::move(block));
}

void FileQueue::finish() {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [this] { return failure_ || (jobs_.empty() && being_written_ == 0); });
    rethrow_failure();
}

std::uint64_t FileQueue::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
}

std::uint64_t FileQueue::written_bytes() const {
    const std::lock_guard lock(mutex_);
    return written_bytes_;
}

void FileQueue::run_writer() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
        if (stop_) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        ++being_written_;
        lock.unlock();

        std::exception_ptr failure;
        std::uint64_t written = 0;
        try {
            for (const auto& [path, content] : job.files) {
                OutputFile file(path, OutputFile::Buffering::none);
                file.writer().write(content);
                file.commit();
                written += content.size();
            }
        } catch (...) {
            failure = std::current_exception();
        }

        lock.lock();
        --being_written_;
        written_bytes_ += written;
        if (failure) {
            if (!failure_) failure_ = failure;
            jobs_.clear();
        }
        keep(std::move(job.memory));
    }
}

}  // namespace citysplat::sim
