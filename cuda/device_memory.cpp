#include "cuda/device_memory.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <numeric>

namespace citysplat::gpu {

namespace {

constexpr std::array<const char*, kMemoryUses> kUseNames{"splats", "acceleration", "scenes", "batches",
                                                         "building"};

unsigned column(MemoryUse use) { return static_cast<unsigned>(use); }

}  // namespace

DeviceBuffer::~DeviceBuffer() {
    if (address_) memory_->give_back(use_, address_, bytes_);
}

void DeviceBuffer::becomes(MemoryUse use) {
    if (address_) memory_->move(use_, use, bytes_);
    use_ = use;
}

DeviceBuffer DeviceMemory::allocate(MemoryUse use, std::size_t bytes) {
    if (bytes == 0) return {};
    {
        const std::lock_guard lock(mutex_);
        if (bytes <= limit_bytes_ - std::min(sum(), limit_bytes_)) {
            // Booked before it is asked for, so that threads together cannot pass the limit.
            used_[column(use)] += bytes;
            peak_ = std::max(peak_, sum());
        } else {
            bytes = 0;
        }
    }
    if (bytes == 0) throw ResourceError("GPU memory is used up (" + text() + "); lower --resident");
    try {
        return {*this, use, device_.allocate(bytes), bytes};
    } catch (const ResourceError& e) {
        give_back(use, 0, bytes);
        throw ResourceError(std::string(e.what()) + " (" + text() + "); lower --resident");
    } catch (...) {
        give_back(use, 0, bytes);
        throw;
    }
}

std::size_t DeviceMemory::sum() const { return std::accumulate(used_.begin(), used_.end(), std::size_t{0}); }

std::size_t DeviceMemory::used_bytes() const {
    const std::lock_guard lock(mutex_);
    return sum();
}

std::size_t DeviceMemory::used_bytes(MemoryUse use) const {
    const std::lock_guard lock(mutex_);
    return used_[column(use)];
}

std::size_t DeviceMemory::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_;
}

std::string DeviceMemory::text() const {
    const std::lock_guard lock(mutex_);
    std::string out = "used " + format_bytes(sum()) + " of " + format_bytes(limit_bytes_) + ":";
    for (unsigned i = 0; i < kMemoryUses; ++i)
        out += std::string(i ? ", " : " ") + kUseNames[i] + " " + format_bytes(used_[i]);
    return out;
}

void DeviceMemory::move(MemoryUse from, MemoryUse to, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    used_[column(from)] -= bytes;
    used_[column(to)] += bytes;
}

void DeviceMemory::give_back(MemoryUse use, DeviceAddress address, std::size_t bytes) noexcept {
    if (address) device_.release(address);
    const std::lock_guard lock(mutex_);
    used_[column(use)] -= bytes;
}

}  // namespace citysplat::gpu
