#include "view/server/tile_check.hpp"

#include "core/error.hpp"

#include <chrono>
#include <optional>

namespace citysplat::view {

TileCheck::TileCheck(const TileSource& city) : city_(city), thread_([this] { run(); }) {}

TileCheck::~TileCheck() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

std::size_t TileCheck::checked() const {
    const std::lock_guard lock(mutex_);
    return checked_;
}

std::map<std::size_t, std::string> TileCheck::damaged() const {
    const std::lock_guard lock(mutex_);
    return damaged_;
}

void TileCheck::run() {
    for (std::size_t tile = 0; tile < city_.tiles().size(); ++tile) {
        const auto begin = std::chrono::steady_clock::now();
        std::optional<std::string> problem;
        try {
            city_.load(tile);
        } catch (const std::exception& e) {
            problem = e.what();
        }
        const auto took = std::chrono::steady_clock::now() - begin;
        std::unique_lock lock(mutex_);
        ++checked_;
        if (problem) damaged_.emplace(tile, *problem);
        if (wake_.wait_for(lock, took, [this] { return ending_; })) return;
    }
}

}  // namespace citysplat::view
