#include "core/formats/text_points.hpp"

#include "core/error.hpp"
#include "core/formats/crs.hpp"
#include "core/formats/text_table.hpp"

#include <algorithm>

namespace citysplat::formats {

namespace {

constexpr std::size_t kMaxLine = 64 * 1024;

std::vector<std::string> split_names(std::string_view line) {
    if (line.starts_with("//")) line.remove_prefix(2);
    std::vector<std::string> names;
    std::string name;
    const auto push = [&] {
        if (!name.empty()) names.push_back(std::move(name));
        name.clear();
    };
    for (const char c : line) {
        if (c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r')
            push();
        else if (c != '"')
            name += c;
    }
    push();
    return names;
}

/// The first line that is neither blank nor a comment, and where the next one begins.
struct FirstLine {
    std::string text;
    std::uint64_t next = 0, number = 0;
};

FirstLine first_line(const File& file) {
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kMaxLine)), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(start.data(), start.size())));
    FirstLine line;
    for (std::size_t at = 0; at < start.size();) {
        const std::size_t end = std::min(start.find('\n', at), start.size());
        ++line.number;
        line.text = start.substr(at, end - at);
        line.next = end + 1;
        const std::size_t first = line.text.find_first_not_of(" \t\r");
        if (first != std::string::npos && line.text[first] != '#') return line;
        at = end + 1;
    }
    return {};
}

std::optional<std::size_t> count_numbers(const FirstLine& line, const std::string& name) {
    try {
        return parse_row(line.text, {}, name, line.number);
    } catch (const InputError&) {
        return std::nullopt;
    }
}

std::vector<std::string> default_names(std::size_t columns, const std::string& name) {
    switch (columns) {
        case 3:
            return {"x", "y", "z"};
        case 4:
            return {"x", "y", "z", "intensity"};
        case 6:
            return {"x", "y", "z", "red", "green", "blue"};
        case 7:
            return {"x", "y", "z", "intensity", "red", "green", "blue"};
        default:
            throw InputError(
                name + ": " + std::to_string(columns) +
                " columns without names; put a line like \"x y z intensity label\" on top, or say "
                "so with --columns");
    }
}

}  // namespace

std::unique_ptr<PointFile> open_text_points(File file, const ReadOptions& options) {
    const std::string name = file.path().string();
    FirstLine line = first_line(file);
    std::uint64_t begin = 0, begin_line = 1;
    auto numbers = count_numbers(line, name);
    if (numbers == 1) {  // .pts: the number of points
        begin = line.next, begin_line = line.number + 1;
        numbers = std::nullopt;
    }
    std::vector<std::string> names;
    TextIndex index;
    if (!numbers && begin == 0) {
        names = split_names(line.text);
        if (std::any_of(names.begin(), names.end(), [](const std::string& n) {
                return std::any_of(n.begin(), n.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
            }))
            throw InputError(name + ": neither text nor a known point file");
        begin = line.next, begin_line = line.number + 1;
    }
    index = index_text(file, std::min(begin, file.size()), begin_line, UINT64_MAX);
    if (!options.text_columns.empty()) names = split_names(options.text_columns);
    if (names.empty() && index.records) {
        if (!numbers) {
            const auto& b = index.blocks.front();
            std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(b.bytes, kMaxLine)), '\0');
            file.read_at(b.offset, std::as_writable_bytes(std::span(start.data(), start.size())));
            numbers = parse_row(start.substr(0, start.find('\n')), {}, name, b.first_line);
        }
        names = default_names(*numbers, name);
    }
    std::vector<Column> columns;
    for (std::size_t i = 0; i < names.size(); ++i) columns.push_back({names[i], Scalar::f64, i});
    Crs crs;
    crs.assign(options, name);
    TableConvention convention;
    convention.metres_per_unit = crs.scale_to_deliver(options, name);
    TableDecoder decoder(std::move(columns), name, options, convention);
    decoder.use_labels(index.records);
    PointFileInfo info;
    info.format = "text, " + std::to_string(names.size()) + " columns";
    info.points = index.records;
    crs.describe(info);
    return make_text_table_file(std::move(file), std::move(index), std::move(decoder), std::move(info),
                                options.salvage);
}

}  // namespace citysplat::formats
