#include "io/las/integer_decoder.hpp"

#include <algorithm>

namespace citysplat::io {

namespace {

constexpr std::uint32_t kBitShift = 13, kSymbolShift = 15, kMinLength = 1u << 24;

}  // namespace

LazIntegerDecoder::SymbolModel::SymbolModel(std::uint32_t n) : count(n, 1), distribution(n), cycle(n) {
    update();
    until_update = cycle = (n + 6) >> 1;
}

void LazIntegerDecoder::SymbolModel::update() {
    total += cycle;
    if (total > 1u << kSymbolShift) {
        total = 0;
        for (auto& c : count) total += c = (c + 1) >> 1;
    }
    const std::uint32_t scale = 0x80000000u / total;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < count.size(); ++i) {
        distribution[i] = (scale * sum) >> (31 - kSymbolShift);
        sum += count[i];
    }
    cycle = std::min((5 * cycle) >> 2, (static_cast<std::uint32_t>(count.size()) + 6) << 3);
    until_update = cycle;
}

void LazIntegerDecoder::BitModel::update() {
    total += cycle;
    if (total > 1u << kBitShift) {
        total = (total + 1) >> 1;
        zeros = (zeros + 1) >> 1;
        if (zeros == total) ++total;
    }
    const std::uint32_t scale = 0x80000000u / total;
    zero_probability = (zeros * scale) >> (31 - kBitShift);
    cycle = std::min((5 * cycle) >> 2, 64u);
    until_update = cycle;
}

LazIntegerDecoder::LazIntegerDecoder(std::span<const std::byte> input) : input_(input) {
    for (int i = 0; i < 4; ++i) value_ = value_ << 8 | static_cast<std::uint32_t>(input_[at_++]);
    for (std::uint32_t i = 0; i < kContexts; ++i) lengths_.emplace_back(33);
    for (std::uint32_t bits = 1; bits <= 32; ++bits)
        correctors_.emplace_back(1u << std::min(bits, kHighBits));
}

void LazIntegerDecoder::renormalise() {
    while (length_ < kMinLength) {
        std::uint32_t byte = 0;
        if (at_ < input_.size())
            byte = static_cast<std::uint32_t>(input_[at_++]);
        else
            ++overrun_;
        value_ = value_ << 8 | byte;
        length_ <<= 8;
    }
}

std::uint32_t LazIntegerDecoder::symbol(SymbolModel& model) {
    std::uint32_t top = length_, base = 0, found = 0;
    length_ >>= kSymbolShift;
    auto end = static_cast<std::uint32_t>(model.count.size());
    for (std::uint32_t middle = end >> 1; middle != found; middle = (found + end) >> 1) {
        const std::uint32_t at = length_ * model.distribution[middle];
        if (at > value_)
            end = middle, top = at;
        else
            found = middle, base = at;
    }
    value_ -= base;
    length_ = top - base;
    renormalise();
    ++model.count[found];
    if (--model.until_update == 0) model.update();
    return found;
}

std::uint32_t LazIntegerDecoder::bit(BitModel& model) {
    const std::uint32_t split = model.zero_probability * (length_ >> kBitShift);
    const std::uint32_t value = value_ >= split;
    if (value) {
        value_ -= split;
        length_ -= split;
    } else {
        length_ = split;
        ++model.zeros;
    }
    renormalise();
    if (--model.until_update == 0) model.update();
    return value;
}

std::uint32_t LazIntegerDecoder::raw_bits(std::uint32_t count) {
    if (count > 19) {
        const std::uint32_t low = raw_bits(16);
        return raw_bits(count - 16) << 16 | low;
    }
    length_ >>= count;
    const std::uint32_t value = value_ / length_;
    value_ -= length_ * value;
    renormalise();
    return value;
}

std::uint32_t LazIntegerDecoder::corrector(SymbolModel& lengths) {
    const std::uint32_t bits = symbol(lengths);
    if (bits == 0) return bit(smallest_);
    if (bits == 32) return 0x80000000u;
    std::uint32_t c = symbol(correctors_[bits - 1]);
    if (bits > kHighBits) c = c << (bits - kHighBits) | raw_bits(bits - kHighBits);
    // Half of the numbers of this length are positive, half negative.
    return c >= 1u << (bits - 1) ? c + 1 : c - ((1u << bits) - 1);
}

std::uint32_t LazIntegerDecoder::next(std::uint32_t prediction, std::size_t context) {
    return prediction + corrector(lengths_[context]);
}

}  // namespace citysplat::io
