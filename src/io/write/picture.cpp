#include "io/write/picture.hpp"

#include "core/error.hpp"
#include "core/output_file.hpp"

#include <png.h>

#include <cstring>
#include <span>
#include <string>

namespace citysplat {

void Picture::write_png(const std::filesystem::path& path) const {
    static_assert(sizeof(Rgb) == 3);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::vector<std::byte> encoded(size);
    if (!png_image_write_to_memory(&image, encoded.data(), &size, 0, pixels_.data(), 0, nullptr))
        throw IoError("cannot encode " + path.string() + ": " + image.message);
    OutputFile out(path);
    out.writer().write(std::span(encoded).first(size));
    out.commit(true);
}

}  // namespace citysplat
