#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace citysplat {

struct Rgb {
    std::uint8_t r = 0, g = 0, b = 0;
};

/// 0xrrggbb, as class maps write colours.
constexpr Rgb rgb_from(std::uint32_t hex) {
    return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8),
            static_cast<std::uint8_t>(hex)};
}

/// An 8-bit RGB image, rows from the top.
class Picture {
  public:
    Picture(int width, int height, Rgb fill = {}) : width_(width), height_(height), pixels_(count(), fill) {}

    int width() const { return width_; }
    int height() const { return height_; }
    Rgb& at(int x, int y) { return pixels_[index(x, y)]; }
    const Rgb& at(int x, int y) const { return pixels_[index(x, y)]; }

    /// With `opaque`, a byte for each pixel: those with 0 are transparent. Throws IoError naming the file.
    void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> opaque = {}) const;

  private:
    std::size_t count() const { return static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_); }
    std::size_t index(int x, int y) const {
        return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
    }

    int width_, height_;
    std::vector<Rgb> pixels_;
};

}  // namespace citysplat
