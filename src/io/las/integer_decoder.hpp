#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citysplat::io {

/// The adaptive arithmetic decoder of LASzip (after Said 2004) with its integer corrector on top: what the
/// chunk table of a LAZ file is written in. Reading beyond the input gives zeros and sets exhausted().
class LazIntegerDecoder {
  public:
    /// Requires at least 4 bytes.
    explicit LazIntegerDecoder(std::span<const std::byte> input);

    /// The next 32-bit number, coded as the difference to `prediction`.
    std::uint32_t next(std::uint32_t prediction, std::size_t context);
    bool exhausted() const { return overrun_ > 0; }

  private:
    /// Frequencies of `n` symbols.
    struct SymbolModel {
        std::vector<std::uint32_t> count, distribution;
        std::uint32_t total = 0, cycle = 0, until_update = 0;

        explicit SymbolModel(std::uint32_t n);
        void update();
    };
    struct BitModel {
        std::uint32_t zeros = 1, total = 2, zero_probability = 1u << 12, cycle = 4, until_update = 4;
        void update();
    };

    static constexpr std::uint32_t kHighBits = 8, kContexts = 2;

    std::uint32_t symbol(SymbolModel& model);
    std::uint32_t bit(BitModel& model);
    std::uint32_t raw_bits(std::uint32_t count);
    std::uint32_t corrector(SymbolModel& lengths);
    void renormalise();

    std::span<const std::byte> input_;
    std::size_t at_ = 0, overrun_ = 0;
    std::uint32_t value_ = 0, length_ = 0xffffffffu;
    std::vector<SymbolModel> lengths_;     ///< one per context: how many bits the corrector has
    std::vector<SymbolModel> correctors_;  ///< by number of bits, from 1
    BitModel smallest_;
};

}  // namespace citysplat::io
