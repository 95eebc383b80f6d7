#include "sim/output/decimated_cloud.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <tuple>

namespace citysplat::sim {

namespace {

constexpr std::size_t kPiles = 256;
/// Of each pile, in memory until they go to the file.
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

/// What decides which record of a cube stays, before the record itself.
struct Head {
    std::int64_t x, y, z;  ///< cube
    double time_s;
    std::uint32_t place;  ///< among the returns of its scan
    std::uint32_t bytes;  ///< of the record behind it

    bool same_cube(const Head& other) const { return x == other.x && y == other.y && z == other.z; }
};
static_assert(sizeof(Head) == 40);

std::int64_t cell(double v, double size_m) { return static_cast<std::int64_t>(std::floor(v / size_m)); }

/// Which pile a cube belongs to: the same for all records of the cube, and about as many for each.
std::size_t pile_of(const Head& h) {
    std::uint64_t mixed = 0;
    for (const std::int64_t c : {h.x, h.y, h.z})
        mixed = (mixed ^ static_cast<std::uint64_t>(c)) * 0x9e3779b97f4a7c15u, mixed ^= mixed >> 29;
    return static_cast<std::size_t>(mixed >> 56);
}

/// A head and its record in a pile that was read.
struct Entry {
    Head head;
    const std::byte* record;
};

bool comes_first(const Entry& a, const Entry& b) {
    const auto key = [](const Head& h) { return std::tie(h.x, h.y, h.z, h.time_s, h.place); };
    if (key(a.head) != key(b.head)) return key(a.head) < key(b.head);
    // Only scans that were taken twice come here.
    const int order = std::memcmp(a.record, b.record, std::min(a.head.bytes, b.head.bytes));
    return order != 0 ? order < 0 : a.head.bytes < b.head.bytes;
}

}  // namespace

DecimatedCloud::DecimatedCloud(const std::filesystem::path& directory, const ScanFormat& format,
                               double size_m)
    : format_(format), size_m_(size_m), file_(temporary_file(directory)), piles_(kPiles) {}

void DecimatedCloud::flush(Pile& pile) {
    file_.append(pile.buffer);
    pile.blocks.push_back({file_bytes_, pile.buffer.size()});
    file_bytes_ += pile.buffer.size();
    pile.buffer.clear();
}

/// All records of a pile, which is empty afterwards.
std::vector<std::byte> DecimatedCloud::take(Pile& pile) {
    std::uint64_t bytes = pile.buffer.size();
    for (const Pile::Block& block : pile.blocks) bytes += block.bytes;
    std::vector<std::byte> all(bytes);
    std::byte* at = all.data();
    for (const Pile::Block& block : pile.blocks) {
        file_.read_at(block.offset, {at, block.bytes});
        at += block.bytes;
    }
    std::copy(pile.buffer.begin(), pile.buffer.end(), at);
    pile = {};
    return all;
}

void DecimatedCloud::add(const Scan& scan, const CloudLayout& layout) {
    std::vector<std::byte> record(format_.most_record_bytes());
    for (std::size_t i = 0; i < scan.returns.size(); ++i) {
        const Return& r = scan.returns[i];
        if (r.status != RayStatus::hit) continue;
        std::byte* end = record.data();
        io::CloudSummary unused;
        format_.append({scan, i, i + 1}, layout, end, unused);
        const Vec3d p = r.position;
        const Head head{cell(p.x, size_m_),
                        cell(p.y, size_m_),
                        cell(p.z, size_m_),
                        scan.time_s + static_cast<double>(r.time_s),
                        static_cast<std::uint32_t>(i),
                        static_cast<std::uint32_t>(end - record.data())};
        Pile& pile = piles_[pile_of(head)];
        const auto* bytes = reinterpret_cast<const std::byte*>(&head);
        pile.buffer.insert(pile.buffer.end(), bytes, bytes + sizeof head);
        pile.buffer.insert(pile.buffer.end(), record.data(), end);
        if (pile.buffer.size() >= kBufferBytes) flush(pile);
    }
}

std::uint64_t DecimatedCloud::finish(const std::function<void(std::span<const std::byte>)>& write) {
    std::uint64_t kept = 0;
    for (Pile& pile : piles_) {
        const std::vector<std::byte> all = take(pile);
        std::vector<Entry> entries;
        for (const std::byte* at = all.data(); at < all.data() + all.size();) {
            Entry entry{};
            std::memcpy(&entry.head, at, sizeof entry.head);
            entry.record = at + sizeof entry.head;
            at = entry.record + entry.head.bytes;
            entries.push_back(entry);
        }
        std::sort(entries.begin(), entries.end(), comes_first);
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (i > 0 && entries[i].head.same_cube(entries[i - 1].head)) continue;
            write({entries[i].record, entries[i].head.bytes});
            ++kept;
        }
    }
    return kept;
}

double parse_length(const std::string& text, const std::string& what) {
    std::string_view number = text;
    double unit_m = 1;
    for (const auto& [name, metres] :
         {std::pair<std::string_view, double>{"mm", 0.001}, {"cm", 0.01}, {"m", 1.0}})
        if (number.ends_with(name)) {
            number.remove_suffix(name.size());
            unit_m = metres;
            break;
        }
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const double length_m = value * unit_m;
    if (error != std::errc() || end != number.data() + number.size() ||
        !(length_m >= 1e-4 && length_m <= 1000))
        throw UsageError(what + " " + text +
                         " is not a length from 0.1mm to 1000m, such as 1mm, 2.5cm or 0.1m");
    return length_m;
}

}  // namespace citysplat::sim
