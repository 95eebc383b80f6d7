#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace citysplat::trace {

/// The memory of one tile, from which its arrays are cut one behind the other. Not initialised, aligned to
/// cache lines.
///
/// From 256 KiB on it is a mapping of its own: the system gives its pages in one go, large ones where it has
/// them, and has them back when the tile goes. Tiles that come and go thus leave no holes in the heap, and
/// the resident set is that of the tiles that are there. Smaller tiles, and all of them where no mapping is
/// to be had, live on the heap.
class TileMemory {
  public:
    TileMemory() = default;
    /// Throws std::bad_alloc.
    explicit TileMemory(std::size_t bytes);

    /// The next `count` items. Requires that they fit: see room().
    template <class T>
    std::span<T> cut(std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
        if (count == 0) return {};
        T* const first = reinterpret_cast<T*>(memory_.get() + used_);
        used_ += room<T>(count);
        return {first, count};
    }
    /// Bytes that cut() takes for so many items.
    template <class T>
    static constexpr std::size_t room(std::size_t count) {
        return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    }
    /// What it takes: whole pages for a mapping.
    std::size_t bytes() const { return bytes_; }
    static std::size_t taken(std::size_t bytes);

  private:
    static constexpr std::size_t kAlignment = 64;

    struct Release {
        std::size_t mapped;  ///< bytes; 0: from the heap
        void operator()(std::byte* memory) const;
    };
    std::unique_ptr<std::byte[], Release> memory_;
    std::size_t bytes_ = 0, used_ = 0;
};

}  // namespace citysplat::trace
