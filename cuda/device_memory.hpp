#pragma once

#include "cuda/device.hpp"

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace citysplat::gpu {

/// What device memory is used for.
enum class MemoryUse : unsigned {
    splats,     ///< discs and facts of resident tiles
    accel,      ///< their acceleration structures, compacted
    scene,      ///< tables and instance structures of bound sets
    batch,      ///< rays, hits and parameters of launches
    transient,  ///< columns, boxes and build space while a tile or a scene is made
};
inline constexpr unsigned kMemoryUses = 5;

class DeviceMemory;

/// A piece of device memory, given back when it goes out of scope. The work that uses it must be done by
/// then.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        DeviceBuffer(std::move(other)).swap(*this);
        return *this;
    }
    ~DeviceBuffer();

    DeviceAddress address() const { return address_; }
    std::size_t bytes() const { return bytes_; }
    /// The same memory in another column of the books.
    void becomes(MemoryUse use);

  private:
    friend class DeviceMemory;
    DeviceBuffer(DeviceMemory& memory, MemoryUse use, DeviceAddress address, std::size_t bytes)
        : memory_(&memory), use_(use), address_(address), bytes_(bytes) {}
    void swap(DeviceBuffer& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(use_, other.use_);
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
    }

    DeviceMemory* memory_ = nullptr;
    MemoryUse use_ = MemoryUse::transient;
    DeviceAddress address_ = 0;
    std::size_t bytes_ = 0;
};

/// The books of device memory: every byte is counted under its use, and no more than the limit is handed out.
/// Safe to call from several threads; outlives its buffers.
class DeviceMemory {
  public:
    DeviceMemory(Device& device, std::size_t limit_bytes) : device_(device), limit_bytes_(limit_bytes) {}
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// An empty buffer for 0 bytes. Throws ResourceError with the state of the books when the limit would be
    /// passed or the device has no more.
    DeviceBuffer allocate(MemoryUse use, std::size_t bytes);

    std::size_t limit_bytes() const { return limit_bytes_; }
    std::size_t used_bytes() const;
    std::size_t used_bytes(MemoryUse use) const;
    std::size_t peak_bytes() const;
    /// "used 1.2 GiB of 7.5 GiB: splats 800 MiB, …"
    std::string text() const;

  private:
    friend class DeviceBuffer;
    void move(MemoryUse from, MemoryUse to, std::size_t bytes);
    void give_back(MemoryUse use, DeviceAddress address, std::size_t bytes) noexcept;
    std::size_t sum() const;

    Device& device_;
    const std::size_t limit_bytes_;
    mutable std::mutex mutex_;
    std::array<std::size_t, kMemoryUses> used_{};
    std::size_t peak_ = 0;
};

/// Pinned host memory, given back when it goes out of scope.
class PinnedBuffer {
  public:
    PinnedBuffer() = default;
    PinnedBuffer(Device& device, std::size_t bytes)
        : device_(&device), data_(device.allocate_pinned(bytes)), bytes_(bytes) {}
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~PinnedBuffer() {
        if (data_) device_->release_pinned(data_);
    }
    std::span<std::byte> bytes() const { return {data_, bytes_}; }
    std::span<std::byte> first(std::size_t n) const { return {data_, n}; }

  private:
    Device* device_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace citysplat::gpu
