#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <type_traits>

namespace citysplat::trace {

/// A fixed number of plain items, not initialised, aligned to cache lines. The system is asked for large
/// pages: arrays of many megabytes that rays read at random otherwise pay for page faults when they are made
/// and for address translation when they are read.
template <class T>
class LargeArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    LargeArray() = default;
    /// Throws std::bad_alloc.
    explicit LargeArray(std::size_t size) : size_(size) {
        if (size == 0) return;
        const std::size_t rounded = (bytes() + kAlignment - 1) / kAlignment * kAlignment;
        items_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, rounded)));
        if (!items_) throw std::bad_alloc();
        advise(rounded);
    }

    std::size_t size() const { return size_; }
    std::size_t bytes() const { return size_ * sizeof(T); }
    T* data() { return items_.get(); }
    const T* data() const { return items_.get(); }
    T& operator[](std::size_t i) { return items_.get()[i]; }
    const T& operator[](std::size_t i) const { return items_.get()[i]; }

  private:
    static constexpr std::size_t kAlignment = 64, kPage = 4096;
    static_assert(alignof(T) <= kAlignment);

    /// A hint: nothing depends on the answer.
    void advise(std::size_t rounded) {
        const auto begin = (reinterpret_cast<std::size_t>(items_.get()) + kPage - 1) / kPage * kPage;
        const auto end = (reinterpret_cast<std::size_t>(items_.get()) + rounded) / kPage * kPage;
        if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }

    struct Free {
        void operator()(T* items) const { std::free(items); }
    };
    std::unique_ptr<T, Free> items_;
    std::size_t size_ = 0;
};

}  // namespace citysplat::trace
