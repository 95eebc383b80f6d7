#include "io/write/picture.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"

#include <png.h>

#include <cstring>
#include <string>

namespace citysplat {

void Picture::write_png(const std::filesystem::path& path, std::span<const std::uint8_t> opaque) const {
    static_assert(sizeof(Rgb) == 3);
    std::vector<std::uint8_t> with_alpha;
    for (std::size_t i = 0; i < opaque.size(); ++i) {
        const Rgb& p = pixels_[i];
        with_alpha.insert(with_alpha.end(), {p.r, p.g, p.b, opaque[i]});
    }
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = opaque.empty() ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::vector<std::byte> encoded(size);
    const void* pixels = opaque.empty() ? static_cast<const void*>(pixels_.data()) : with_alpha.data();
    if (!png_image_write_to_memory(&image, encoded.data(), &size, 0, pixels, 0, nullptr))
        throw IoError("cannot encode " + path.string() + ": " + image.message);
    OutputFile out(path);
    out.writer().write(std::span(encoded).first(size));
    out.commit(true);
}

}  // namespace citysplat
