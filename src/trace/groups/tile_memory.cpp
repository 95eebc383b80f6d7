#include "trace/groups/tile_memory.hpp"

#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace citysplat::trace {

namespace {

constexpr std::size_t kPage = 4096, kLargePage = std::size_t{2} << 20;
/// Less is not worth a mapping, of which a process can have some ten thousand.
constexpr std::size_t kLeastMapped = std::size_t{256} << 10;

std::size_t rounded_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Whole pages, from the beginning of a large one if they hold one. Null when there are none to be had.
std::byte* map_pages(std::size_t bytes) {
    const std::size_t spare = bytes < kLargePage ? 0 : kLargePage - kPage;
    void* const got = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(got);
    const auto address = reinterpret_cast<std::size_t>(got);
    const std::size_t before = spare == 0 ? 0 : rounded_up(address, kLargePage) - address;
    if (before > 0) ::munmap(begin, before);
    if (before < spare) ::munmap(begin + before + bytes, spare - before);
    // Both are hints: nothing depends on the answer.
    ::madvise(begin + before, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    ::madvise(begin + before, bytes, MADV_POPULATE_WRITE);
#endif
    return begin + before;
}

}  // namespace

std::size_t TileMemory::taken(std::size_t bytes) {
    return bytes < kLeastMapped ? bytes : rounded_up(bytes, kPage);
}

TileMemory::TileMemory(std::size_t bytes) : bytes_(taken(bytes)) {
    if (bytes == 0) return;
    if (bytes >= kLeastMapped)
        if (std::byte* const memory = map_pages(bytes_)) {
            memory_ = {memory, Release{bytes_}};
            return;
        }
    auto* const memory =
        static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded_up(bytes, kAlignment)));
    if (!memory) throw std::bad_alloc();
    memory_ = {memory, Release{0}};
}

void TileMemory::Release::operator()(std::byte* memory) const {
    if (mapped > 0)
        ::munmap(memory, mapped);
    else
        std::free(memory);
}

}  // namespace citysplat::trace
