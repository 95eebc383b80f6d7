#pragma once

#include "core/error.hpp"

#include <atomic>

namespace citysplat {

/// Cooperative cancellation. Long loops call `check()` at least every few hundred milliseconds.
/// `request()` is async-signal-safe.
class CancelToken {
  public:
    void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
    void check() const {
        if (requested()) throw Interrupted();
    }

  private:
    std::atomic<bool> requested_{false};
};

}  // namespace citysplat
