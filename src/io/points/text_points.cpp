#include "io/points/text_points.hpp"

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/crs/crs.hpp"
#include "io/points/text_table.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

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

/// A line that is neither blank nor a comment, and where the next one begins.
struct FirstLine {
    std::string text, comment;  ///< the comment right in front of it, if there is one
    std::uint64_t next = 0, number = 0;
};

/// The first such line from byte `offset`, which is line `number`. Empty when there is none.
FirstLine first_line(const File& file, std::uint64_t offset, std::uint64_t number) {
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file.size() - offset, kMaxLine)),
                      '\0');
    file.read_at(offset, std::as_writable_bytes(std::span(start.data(), start.size())));
    FirstLine line;
    for (const Line& found : Lines(start, number)) {
        line.text = found.text;
        line.next = offset + found.next;
        line.number = found.number;
        const std::size_t first = line.text.find_first_not_of(" \t\r");
        if (first != std::string::npos && line.text[first] != '#') return line;
        if (first != std::string::npos) line.comment = line.text.substr(first + 1);
    }
    return {};
}

bool starts_with_number(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t\r,;");
    return first != std::string_view::npos &&
           std::string_view("0123456789+-.").find(line[first]) != std::string_view::npos;
}

/// Refuses a line whose numbers could be taken for others: decimal commas beside other separators, cells
/// without a value, and lines that end with a carriage return alone.
void check_separators(const FirstLine& line, const std::string& name) {
    const auto fail = [&](const std::string& what) {
        throw InputError(name + ": line " + std::to_string(line.number) + ": " + what);
    };
    std::string_view text = line.text;
    text.remove_suffix(text.size() - 1 - std::min(text.find_last_not_of(" \t\r"), text.size() - 1));
    if (text.find('\r') != std::string_view::npos)
        fail("lines end with a carriage return alone; expected line feeds");
    bool commas = false, others = false, value = false;
    std::string_view gap;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find_first_not_of(" \t,;", at), text.size());
        gap = text.substr(at, end - at);
        const auto marks = std::count_if(gap.begin(), gap.end(), [](char c) { return c == ',' || c == ';'; });
        if (marks > 1 || (marks == 1 && !value)) fail("a column is empty; expected a number");
        const bool comma = gap.find(',') != std::string_view::npos;
        commas |= comma;
        others |= !gap.empty() && !comma && value;
        at = std::min(text.find_first_of(" \t,;", end), text.size());
        value = true;
    }
    if (commas && others)
        fail("commas beside other separators; are they decimal commas? Expected decimal points");
}

/// "# x y z label" above the numbers, as some programs write it.
std::vector<std::string> names_in_comment(const FirstLine& line, std::size_t columns) {
    std::vector<std::string> names = split_names(line.comment);
    const auto named = [&](char lower, char upper) {
        return std::any_of(names.begin(), names.end(), [&](const std::string& n) {
            return n == std::string(1, lower) || n == std::string(1, upper);
        });
    };
    const bool all = names.size() == columns && named('x', 'X') && named('y', 'Y') && named('z', 'Z');
    return all ? names : std::vector<std::string>();
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

/// How a text file begins.
struct TextHead {
    std::vector<std::string> names;               ///< empty when there are none
    std::optional<std::uint64_t> claimed_points;  ///< .pts
    std::uint64_t begin = 0, begin_line = 1;
};

TextHead read_head(const File& file, const std::string& name) {
    TextHead head;
    char mark[3]{};
    const std::size_t got = file.read_some_at(0, std::as_writable_bytes(std::span(mark)));
    if (std::string_view(mark, got) == kByteOrderMark) head.begin = got;
    const FirstLine line = first_line(file, head.begin, 1);
    if (line.text.empty()) throw InputError(name + ": the file has no line with points or names of columns");
    if (starts_with_number(line.text)) {
        double first = 0;
        if (parse_row(line.text, std::span(&first, 1), name, line.number) != 1) return head;
        if (!(first >= 0 && first < 1e18 && first == std::floor(first)))
            throw InputError(name + ": line " + std::to_string(line.number) + ": \"" + line.text +
                             "\" is not a number of points");
        head.claimed_points = static_cast<std::uint64_t>(first);
    } else {
        head.names = split_names(line.text);
        for (const std::string& n : head.names)
            if (std::any_of(n.begin(), n.end(),
                            [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
                throw InputError(name + ": neither text nor a known point file");
    }
    head.begin = line.next, head.begin_line = line.number + 1;
    return head;
}

/// What the columns of the numbers are called: as told, as in the file, or by how many there are.
std::vector<std::string> column_names(const File& file, const TextHead& head, const TextIndex& index,
                                      const ReadOptions& options) {
    const std::string name = file.path().string();
    std::vector<std::string> names =
        options.text_columns.empty() ? head.names : split_names(options.text_columns);
    if (!index.records) return names;
    const FirstLine line = first_line(file, head.begin, head.begin_line);
    check_separators(line, name);
    if (!names.empty()) return names;
    const std::size_t columns = parse_row(line.text, {}, name, line.number);
    names = names_in_comment(line, columns);
    return names.empty() ? default_names(columns, name) : names;
}

}  // namespace

std::unique_ptr<PointFile> open_text_points(File file, const ReadOptions& options) {
    const std::string name = file.path().string();
    const TextHead head = read_head(file, name);
    TextIndex index = index_text(file, head.begin, head.begin_line, UINT64_MAX);
    const std::uint64_t claimed = head.claimed_points.value_or(index.records);
    if (claimed != index.records && !options.salvage)
        throw InputError(name + ": line " + std::to_string(head.begin_line - 1) + ": claims " +
                         std::to_string(claimed) + " points, but the file has " +
                         std::to_string(index.records) + "; --salvage reads what is there");
    const std::vector<std::string> names = column_names(file, head, index, options);
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
    info.points_lost = claimed - std::min(claimed, index.records);
    crs.describe(info);
    return make_text_table_file(std::move(file), std::move(index), std::move(decoder), std::move(info),
                                options.salvage);
}

}  // namespace citysplat::io
