#pragma once

namespace citysplat {

/// Asks for the line of the cache at this address, which may be any.
inline void prefetch(const void* address) {
    __builtin_prefetch(address);
    // gcc takes a function that only prefetches for one without effect and drops its calls: this is one.
    asm volatile("");
}

}  // namespace citysplat
