#include "splat/search/curve.hpp"

#include "core/parallel.hpp"

#include <array>
#include <bit>
#include <utility>

namespace citysplat::splat {
namespace {

/// One octant of the curve at a time: for each of the orientations of the curve inside a cube, which rank an
/// octant has on it and in which orientation the curve runs through that octant.
struct CurveTables {
    struct Step {
        std::uint8_t rank, next;
    };
    std::array<std::array<Step, 8>, 24> step{};
};

/// An orientation maps the cube's axes to those of the canonical curve: a permutation and a reflection.
struct Orientation {
    std::array<std::uint8_t, 3> axis;
    std::uint8_t flip;
    friend bool operator==(const Orientation&, const Orientation&) = default;
};

constexpr unsigned apply(const Orientation& o, unsigned octant) {
    unsigned out = 0;
    for (unsigned i = 0; i < 3; ++i) out |= ((octant >> o.axis[i]) & 1u) << i;
    return out ^ o.flip;
}

/// The map "first `outer`, then `inner`".
constexpr Orientation compose(const Orientation& outer, const Orientation& inner) {
    Orientation o{};
    for (unsigned i = 0; i < 3; ++i) o.axis[i] = outer.axis[inner.axis[i]];
    const Orientation linear{inner.axis, 0};
    o.flip = static_cast<std::uint8_t>(apply(linear, outer.flip) ^ inner.flip);
    return o;
}

/// The canonical curve visits octants in Gray code from corner 0 to corner 4 (z). In each octant the curve
/// must enter and leave next to its neighbours on the curve; these orientations do that.
constexpr CurveTables make_tables() {
    // Entry corner and exit axis of each octant in visiting order (Hamilton's construction for n = 3).
    constexpr std::array<unsigned, 8> gray{0, 1, 3, 2, 6, 7, 5, 4};
    constexpr std::array<unsigned, 8> entry{0, 0, 0, 3, 3, 6, 6, 5};
    constexpr std::array<unsigned, 8> direction{0, 1, 1, 2, 2, 1, 1, 0};
    std::array<Orientation, 24> known{};
    known[0] = {{0, 1, 2}, 0};
    unsigned count = 1;
    CurveTables t{};
    for (unsigned s = 0; s < count; ++s) {
        for (unsigned octant = 0; octant < 8; ++octant) {
            const unsigned canonical = apply(known[s], octant);
            unsigned rank = 0;
            while (gray[rank] != canonical) ++rank;
            // Inside octant `rank`: reflect by the entry corner, then rotate so that the exit axis of the
            // sub-curve (z in the canonical frame) lies along `direction`.
            const unsigned d = direction[rank];
            Orientation inner{};
            for (unsigned i = 0; i < 3; ++i) inner.axis[i] = static_cast<std::uint8_t>((i + d + 1) % 3);
            const Orientation rotation{inner.axis, 0};
            inner.flip = static_cast<std::uint8_t>(apply(rotation, entry[rank]));
            const Orientation next = compose(known[s], inner);
            unsigned n = 0;
            while (n < count && !(known[n] == next)) ++n;
            if (n == count) known[count++] = next;
            t.step[s][octant] = {static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(n)};
        }
    }
    return t;
}

constexpr CurveTables kTables = make_tables();

/// Two octants at a time, by two bits of each coordinate: (x, y, z) from the lowest.
struct PairTables {
    std::array<std::array<CurveTables::Step, 64>, 24> step{};
};
constexpr PairTables make_pair_tables() {
    PairTables pairs{};
    for (unsigned s = 0; s < 24; ++s)
        for (unsigned bits = 0; bits < 64; ++bits) {
            const auto octant = [bits](unsigned b) {
                return ((bits >> b) & 1u) | ((bits >> (b + 2)) & 1u) << 1 | ((bits >> (b + 4)) & 1u) << 2;
            };
            const CurveTables::Step outer = kTables.step[s][octant(1)],
                                    inner = kTables.step[outer.next][octant(0)];
            pairs.step[s][bits] = {static_cast<std::uint8_t>(outer.rank << 3 | inner.rank), inner.next};
        }
    return pairs;
}
constexpr PairTables kPairTables = make_pair_tables();

}  // namespace

std::uint64_t hilbert_key(std::uint32_t x, std::uint32_t y, std::uint32_t z, int bits) {
    std::uint64_t key = 0;
    unsigned state = 0;
    if (bits % 2 != 0) {
        --bits;
        const unsigned octant = ((x >> bits) & 1u) | ((y >> bits) & 1u) << 1 | ((z >> bits) & 1u) << 2;
        key = kTables.step[0][octant].rank;
        state = kTables.step[0][octant].next;
    }
    for (int b = bits - 2; b >= 0; b -= 2) {
        const unsigned pair = ((x >> b) & 3u) | ((y >> b) & 3u) << 2 | ((z >> b) & 3u) << 4;
        const auto step = kPairTables.step[state][pair];
        key = key << 6 | step.rank;
        state = step.next;
    }
    return key;
}

namespace {

/// Digit by digit from the lowest. Chunks count their digits and then move their entries to places that
/// follow those of the chunks before them: stable, and the same for any number of threads.
template <class Entry, class KeyOf>
void radix_sort(std::vector<Entry>& entries, int low_bit, int high_bit, const KeyOf& key_of) {
    constexpr int kDigitBits = 10;
    constexpr std::size_t kDigits = 1u << kDigitBits, kChunk = 1 << 16;
    std::vector<Entry> other(entries.size());
    using Places = std::array<std::uint32_t, kDigits>;
    std::vector<Places> places((entries.size() + kChunk - 1) / kChunk);
    for (int shift = low_bit; shift < high_bit; shift += kDigitBits) {
        const std::uint64_t mask = (std::uint64_t{1} << std::min(kDigitBits, high_bit - shift)) - 1;
        const auto digit = [&](const Entry& e) { return key_of(e) >> shift & mask; };
        for_each_chunk(entries.size(), kChunk, CancelToken(), [&](std::size_t begin, std::size_t end) {
            Places& p = places[begin / kChunk];
            p.fill(0);
            for (std::size_t i = begin; i < end; ++i) ++p[digit(entries[i])];
        });
        std::uint32_t total = 0;
        for (std::size_t d = 0; d < kDigits; ++d)
            for (Places& p : places) total += std::exchange(p[d], total);
        for_each_chunk(entries.size(), kChunk, CancelToken(), [&](std::size_t begin, std::size_t end) {
            Places& p = places[begin / kChunk];
            for (std::size_t i = begin; i < end; ++i) other[p[digit(entries[i])]++] = entries[i];
        });
        entries.swap(other);
    }
}

}  // namespace

void sort_by_bits(std::vector<std::uint64_t>& numbers, int low_bit, int high_bit) {
    radix_sort(numbers, low_bit, high_bit, [](std::uint64_t n) { return n; });
}

void sort_by_key(std::vector<KeyedIndex>& entries, int key_bits) {
    radix_sort(entries, 0, key_bits, [](const KeyedIndex& e) { return e.key; });
}

}  // namespace citysplat::splat
