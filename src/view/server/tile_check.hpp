#pragma once

#include "core/cancel.hpp"
#include "model/tile_source.hpp"

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace citysplat::view {

/// Reads every tile of a city once, so that damage is told even where nobody looks: coarse levels that were
/// kept show a tile that is no longer whole.
///
/// Protocol. One thread of its own, which rests after each tile for as long as reading it took: at most half
/// a core and half the disk. The destructor ends it.
class TileCheck {
  public:
    /// The city outlives it.
    explicit TileCheck(const TileSource& city);
    ~TileCheck();
    TileCheck(const TileCheck&) = delete;
    TileCheck& operator=(const TileCheck&) = delete;

    std::size_t checked() const;
    std::map<std::size_t, std::string> damaged() const;  ///< by tile, with the reason

  private:
    void run();

    const TileSource& city_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    bool ending_ = false;
    std::size_t checked_ = 0;
    std::map<std::size_t, std::string> damaged_;
    std::thread thread_;
};

}  // namespace citysplat::view
