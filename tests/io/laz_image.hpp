#pragma once

#include "io/las_image.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citysplat::test {

/// The other side of io::LazIntegerDecoder, written from the description of LASzip's coder: an oracle
/// for it, and a way to make LAZ files by hand.
class LazIntegerEncoder {
  public:
    void add(std::uint32_t value, std::uint32_t prediction, std::size_t context) {
        const std::uint32_t c = value - prediction;
        const auto s = static_cast<std::int32_t>(c);
        if (c == 0 || c == 1) {
            symbol(lengths_[context], 0);
            bit(c);
            return;
        }
        // k bits hold −(2^k − 1) … −2^(k−1) and 2^(k−1) + 1 … 2^k.
        std::uint32_t k = 1;
        const std::uint64_t magnitude =
            s < 0 ? static_cast<std::uint64_t>(-static_cast<std::int64_t>(s)) : c - 1;
        while (magnitude >> k) ++k;
        symbol(lengths_[context], k);
        if (k == 32) return;
        const std::uint32_t coded = s < 0 ? c + ((1u << k) - 1) : c - 1;
        if (k <= 8) return symbol(correctors_[k - 1], coded);
        symbol(correctors_[k - 1], coded >> (k - 8));
        raw(coded & ((1u << (k - 8)) - 1), k - 8);
    }

    std::string finish() {
        const bool another = length_ > 2 * kMin;
        const std::uint32_t before = base_;
        base_ += another ? kMin : kMin >> 1;
        length_ = another ? kMin >> 1 : kMin >> 9;
        if (before > base_) carry();
        renormalise();
        out_.append(another ? 3 : 2, '\0');
        return std::move(out_);
    }

  private:
    static constexpr std::uint32_t kMin = 1u << 24;

    struct Model {
        explicit Model(std::uint32_t n) : count(n, 1), distribution(n), cycle(n) {
            update();
            left = cycle = (n + 6) / 2;
        }
        void update() {
            total += cycle;
            if (total > 32768) {
                total = 0;
                for (auto& c : count) total += c = (c + 1) / 2;
            }
            std::uint32_t sum = 0;
            for (std::size_t i = 0; i < count.size(); ++i) {
                distribution[i] = (0x80000000u / total * sum) >> 16;
                sum += count[i];
            }
            cycle = std::min(5 * cycle / 4, 8 * (static_cast<std::uint32_t>(count.size()) + 6));
            left = cycle;
        }
        std::vector<std::uint32_t> count, distribution;
        std::uint32_t total = 0, cycle, left = 0;
    };

    void symbol(Model& m, std::uint32_t s) {
        const std::uint32_t before = base_;
        if (s + 1 == m.count.size()) {
            const std::uint32_t x = m.distribution[s] * (length_ >> 15);
            base_ += x;
            length_ -= x;
        } else {
            length_ >>= 15;
            const std::uint32_t x = m.distribution[s] * length_;
            base_ += x;
            length_ = m.distribution[s + 1] * length_ - x;
        }
        if (before > base_) carry();
        renormalise();
        ++m.count[s];
        if (--m.left == 0) m.update();
    }
    void bit(std::uint32_t value) {
        const std::uint32_t x = zero_probability_ * (length_ >> 13), before = base_;
        if (value) {
            base_ += x;
            length_ -= x;
            if (before > base_) carry();
        } else {
            length_ = x;
            ++zeros_;
        }
        renormalise();
        if (--bits_left_ != 0) return;
        bits_ += bit_cycle_;
        if (bits_ > 8192) {
            bits_ = (bits_ + 1) / 2;
            zeros_ = (zeros_ + 1) / 2;
            if (zeros_ == bits_) ++bits_;
        }
        zero_probability_ = (zeros_ * (0x80000000u / bits_)) >> 18;
        bit_cycle_ = std::min(5 * bit_cycle_ / 4, 64u);
        bits_left_ = bit_cycle_;
    }
    void raw(std::uint32_t value, std::uint32_t bits) {
        if (bits > 19) {
            raw(value & 0xffff, 16);
            value >>= 16;
            bits -= 16;
        }
        const std::uint32_t before = base_;
        length_ >>= bits;
        base_ += value * length_;
        if (before > base_) carry();
        renormalise();
    }
    void carry() {
        std::size_t i = out_.size();
        while (i > 0 && static_cast<unsigned char>(out_[i - 1]) == 0xff) out_[--i] = 0;
        if (i > 0) ++out_[i - 1];
    }
    void renormalise() {
        while (length_ < kMin) {
            out_ += static_cast<char>(base_ >> 24);
            base_ <<= 8;
            length_ <<= 8;
        }
    }

    std::string out_;
    std::uint32_t base_ = 0, length_ = 0xffffffffu;
    std::vector<Model> lengths_{Model(33), Model(33)};
    std::vector<Model> correctors_ = [] {
        std::vector<Model> models;
        for (std::uint32_t k = 1; k <= 32; ++k) models.emplace_back(1u << std::min(k, 8u));
        return models;
    }();
    std::uint32_t zeros_ = 1, bits_ = 2, zero_probability_ = 4096, bit_cycle_ = 4, bits_left_ = 4;
};

/// Where things are in laz_image().
struct LazImage : LasImage {
    std::size_t record_at = 0;  ///< payload of the LASzip record
    std::size_t table_at = 0;
};

/// A LAZ file, LAS 1.2 format 0, of chunks with one point each: a first point is stored as it is, so that no
/// point needs to be coded; only the chunk table is. `more` records follow the LASzip record.
inline LazImage laz_image(std::uint32_t points, bool variable_chunks = false,
                          const std::vector<LasVlrImage>& more = {}) {
    std::string record(34, '\0');
    record[0] = 2;  // pointwise, chunked
    const std::uint32_t chunk = variable_chunks ? 0xffffffffu : 1u;
    std::memcpy(record.data() + 12, &chunk, 4);
    record[32] = 1;
    record += std::string("\x06\0\x14\0\x02\0", 6);  // POINT10, 20 bytes, version 2
    std::vector<LasVlrImage> records{{"laszip encoded", 22204, record}};
    records.insert(records.end(), more.begin(), more.end());
    const LasImage plain = las_image(2, 0, points, 0, records);
    constexpr std::size_t kChunkBytes = 20 + 4;  // the point, and what the decoder reads ahead
    LazImage f;
    f.record_at = 227 + kLasVlrHead;
    const std::size_t begin = plain.points_offset();
    f.bytes.assign(plain.bytes.begin(), plain.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    f.table_at = begin + 8 + kChunkBytes * points;
    f.set<std::uint8_t>(104, 0x80).set(begin, static_cast<std::int64_t>(f.table_at));
    f.bytes.resize(f.table_at);
    for (std::size_t i = 0; i < points; ++i)
        std::memcpy(f.bytes.data() + begin + 8 + kChunkBytes * i, plain.bytes.data() + begin + 20 * i, 20);
    f.set<std::uint32_t>(f.table_at, 0).set(f.table_at + 4, points);
    LazIntegerEncoder table;
    for (std::uint32_t i = 0; i < points; ++i) {
        if (variable_chunks) table.add(1, i ? 1 : 0, 0);
        table.add(kChunkBytes, i ? kChunkBytes : 0, 1);
    }
    f.text(f.table_at + 8, table.finish());
    return f;
}

}  // namespace citysplat::test
