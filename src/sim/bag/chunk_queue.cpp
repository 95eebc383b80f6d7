#include "sim/bag/chunk_queue.hpp"

namespace citysplat::sim {

namespace {

constexpr std::size_t kMostWaitingBytes = std::size_t{32} << 20;
constexpr std::size_t kMostKept = 8;

}  // namespace

ChunkQueue::ChunkQueue(io::McapWriter& writer) : writer_(writer), thread_([this] { run(); }) {}

ChunkQueue::~ChunkQueue() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        chunks_.clear();
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
}

std::vector<std::byte> ChunkQueue::take_memory() {
    const std::lock_guard lock(mutex_);
    if (memory_.empty()) return {};
    std::vector<std::byte> memory = std::move(memory_.back());
    memory_.pop_back();
    return memory;
}

void ChunkQueue::put(io::McapChunk chunk) {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [this] { return failure_ || waiting_bytes_ < kMostWaitingBytes; });
    if (failure_) std::rethrow_exception(failure_);
    waiting_bytes_ += chunk.size();
    chunks_.push_back(std::move(chunk));
    work_.notify_one();
}

void ChunkQueue::finish() {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [this] { return failure_ || (chunks_.empty() && !busy_); });
    if (failure_) std::rethrow_exception(failure_);
}

void ChunkQueue::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return stop_ || !chunks_.empty(); });
        if (stop_) return;
        io::McapChunk chunk = std::move(chunks_.front());
        chunks_.pop_front();
        busy_ = true;
        lock.unlock();
        std::exception_ptr failure;
        try {
            writer_.append(chunk);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        busy_ = false;
        waiting_bytes_ -= chunk.size();
        if (memory_.size() < kMostKept) memory_.push_back(chunk.take_memory());
        if (failure) {
            failure_ = failure;
            chunks_.clear();
            stop_ = true;
        }
        progress_.notify_all();
    }
}

}  // namespace citysplat::sim
