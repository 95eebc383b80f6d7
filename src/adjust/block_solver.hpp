#pragma once

#include "core/cancel.hpp"

#include <array>
#include <cstdint>
#include <vector>

/// Linear equations whose unknowns come in groups of six, one group a knot: symmetric, positive definite,
/// sparse by knots. The factorisation is our own because it can be cancelled, says what memory it needs
/// before it takes it, and has the same bits everywhere; the order of elimination is Eigen's.
namespace citysplat::adjust {

inline constexpr std::size_t kUnknowns = 6;
using Block = std::array<double, kUnknowns * kUnknowns>;  ///< row-major
using BlockVector = std::array<double, kUnknowns>;

/// The lower half of a symmetric matrix of blocks, and a right-hand side. Different rows may be changed by
/// different threads.
class BlockEquations {
  public:
    /// The blocks of one row that are there, by column; the last one is the diagonal.
    struct Row {
        std::vector<std::uint32_t> columns;
        std::vector<Block> blocks;
        BlockVector right{};

        /// Where the block of a column is, at or after `from`; made, with zeros, when it is not there.
        /// Requires that the columns before `from` are smaller.
        std::size_t find(std::uint32_t column, std::size_t from = 0);
    };

    explicit BlockEquations(std::size_t groups);

    std::size_t groups() const { return rows_.size(); }
    Row& row(std::size_t index) { return rows_[index]; }
    const Row& row(std::size_t index) const { return rows_[index]; }
    /// The block of `row` ≥ `column`.
    Block& at(std::size_t row, std::size_t column);
    /// Memory of the blocks so far.
    std::uint64_t bytes() const;

    /// The unknowns. Throws ResourceError when the factor would need more than `most_bytes`, with what it
    /// needs; Interrupted.
    std::vector<BlockVector> solve(std::uint64_t most_bytes, const CancelToken& cancel) const;

  private:
    friend class BlockFactor;
    std::vector<Row> rows_;
};

}  // namespace citysplat::adjust
