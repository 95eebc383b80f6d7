#include "io/points/label_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/bytes_le.hpp"
#include "io/points/point_values.hpp"

#include <algorithm>
#include <charconv>

namespace citysplat::io {

namespace {

[[noreturn]] void wrong_count(const std::string& name, std::uint64_t got, std::uint64_t points) {
    throw InputError(name + ": " + std::to_string(got) + " labels for a cloud of " + std::to_string(points) +
                     " points");
}

std::int64_t load_integer(const std::byte* at, char kind, std::size_t bytes) {
    switch (bytes) {
        case 1:
            return kind == 'u' ? load_le<std::uint8_t>(at) : load_le<std::int8_t>(at);
        case 2:
            return kind == 'u' ? load_le<std::uint16_t>(at) : load_le<std::int16_t>(at);
        case 4:
            return kind == 'u' ? static_cast<std::int64_t>(load_le<std::uint32_t>(at))
                               : load_le<std::int32_t>(at);
        default:
            return load_le<std::int64_t>(at);
    }
}

}  // namespace

LabelFile::LabelFile(const std::filesystem::path& path, std::uint64_t points) : name_(path.string()) {
    const std::string extension = path.extension().string();
    // Labels are held in memory; a lie about the number of points must not decide how much of it.
    if (points > File(path, File::Mode::read).size())
        wrong_count(name_, File(path, File::Mode::read).size(), points);
    labels_.resize(static_cast<std::size_t>(points));
    if (extension == ".label")
        read_binary(path, points);
    else if (extension == ".npy")
        read_numpy(path, points);
    else if (extension == ".txt" || extension == ".labels")
        read_text(path, points);
    else
        throw InputError(name_ + ": a label file is named .label, .npy, .txt or .labels");
}

void LabelFile::take(std::uint64_t index, std::int64_t value) {
    if (value < 0 || value > 0xffffffff || (value & 0xffff) == kBadLabel)
        throw InputError(name_ + ": label " + std::to_string(index) + " is " + std::to_string(value) +
                         "; expected 0 to 65534, or with an instance in the high 16 bits");
    const auto label = static_cast<std::uint16_t>(value & 0xffff),
               instance = static_cast<std::uint16_t>(value >> 16);
    labels_[static_cast<std::size_t>(index)] = label;
    if (instance != 0 && instances_.empty()) instances_.resize(labels_.size());
    if (!instances_.empty()) instances_[static_cast<std::size_t>(index)] = instance;
}

void LabelFile::read_binary(const std::filesystem::path& path, std::uint64_t points) {
    const std::uint64_t bytes = File(path, File::Mode::read).size();
    if (bytes % 4 != 0)
        throw InputError(name_ + ": " + std::to_string(bytes) +
                         " bytes are not a whole number of 4-byte labels");
    if (bytes / 4 != points) wrong_count(name_, bytes / 4, points);
    const std::vector<std::byte> raw = read_file(path);
    instances_.resize(labels_.size());
    for (std::uint64_t i = 0; i < points; ++i) take(i, load_le<std::uint32_t>(raw.data() + 4 * i));
}

/// "\x93NUMPY", version, header length, a Python dict with 'descr': '<u2', 'fortran_order', 'shape': (n,).
void LabelFile::read_numpy(const std::filesystem::path& path, std::uint64_t points) {
    const std::vector<std::byte> raw = read_file(path);
    const std::string_view text(reinterpret_cast<const char*>(raw.data()), raw.size());
    const auto fail = [&](const std::string& what) { throw InputError(name_ + ": " + what); };
    if (raw.size() < 12 || !text.starts_with("\x93NUMPY")) fail("not a NumPy file");
    const bool wide = raw[6] != std::byte{1};
    const std::uint64_t head =
        wide ? load_le<std::uint32_t>(raw.data() + 8) : load_le<std::uint16_t>(raw.data() + 8);
    const std::uint64_t begin = (wide ? 12 : 10) + head;
    if (begin > raw.size()) fail("the NumPy header is cut off");
    const std::string_view header = text.substr(0, static_cast<std::size_t>(begin));
    const std::size_t type = header.find("'descr': '");
    if (type == std::string_view::npos || type + 13 > header.size()) fail("the NumPy header has no descr");
    const char order = header[type + 10], kind = header[type + 11], digit = header[type + 12];
    const std::size_t bytes = static_cast<std::size_t>(digit - '0');
    const bool known = (kind == 'u' || kind == 'i') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (!known || (order != '<' && order != '|'))
        fail("NumPy type \"" + std::string(header.substr(type + 10, 3)) +
             "\"; expected little-endian integers");
    const std::uint64_t count = (raw.size() - begin) / bytes;
    if (count != points || (raw.size() - begin) % bytes) wrong_count(name_, count, points);
    for (std::uint64_t i = 0; i < points; ++i)
        take(i, load_integer(raw.data() + begin + i * bytes, kind, bytes));
}

void LabelFile::read_text(const std::filesystem::path& path, std::uint64_t points) {
    const std::string text = read_text_file(path);
    std::uint64_t count = 0;
    for (const auto& [whole_line, line_number, next, ended] : Lines(text)) {
        const std::string_view line = whole_line.substr(0, whole_line.find_last_not_of(" \r") + 1);
        if (line.empty() || line[0] == '#') continue;
        std::int64_t value = 0;
        const auto [stop, ec] = std::from_chars(line.data(), line.data() + line.size(), value);
        if (ec != std::errc() || stop != line.data() + line.size())
            throw InputError(name_ + ": line " + std::to_string(line_number) + ": \"" +
                             std::string(line.substr(0, 40)) + "\" is not a whole number");
        if (count < points) take(count, value);
        ++count;
    }
    if (count != points) wrong_count(name_, count, points);
}

void LabelFile::fill(std::uint64_t first, std::span<std::uint16_t> labels,
                     std::span<std::uint16_t> instances) const {
    std::copy_n(labels_.begin() + static_cast<std::ptrdiff_t>(first), labels.size(), labels.begin());
    if (has_instances())
        std::copy_n(instances_.begin() + static_cast<std::ptrdiff_t>(first), instances.size(),
                    instances.begin());
}

}  // namespace citysplat::io
