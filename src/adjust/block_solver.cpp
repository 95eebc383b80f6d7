#include "adjust/block_solver.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace citysplat::adjust {

namespace {

constexpr std::size_t kN = kUnknowns;

/// c −= a b. Rows of b are added as wholes, which vector units do in one go.
void subtract_product(Block& c, const Block& a, const Block& b) {
    for (std::size_t i = 0; i < kN; ++i) {
        BlockVector sum{};
        for (std::size_t k = 0; k < kN; ++k)
            for (std::size_t j = 0; j < kN; ++j) sum[j] += a[kN * i + k] * b[kN * k + j];
        for (std::size_t j = 0; j < kN; ++j) c[kN * i + j] -= sum[j];
    }
}

/// a ← a L⁻ᵀ with a lower triangular L.
void divide_by_transposed(Block& a, const Block& lower) {
    for (std::size_t i = 0; i < kN; ++i)
        for (std::size_t j = 0; j < kN; ++j) {
            double v = a[kN * i + j];
            for (std::size_t k = 0; k < j; ++k) v -= a[kN * i + k] * lower[kN * j + k];
            a[kN * i + j] = v / lower[kN * j + j];
        }
}

/// The Cholesky factor of a block in its lower half. False when it is not positive definite.
bool factor_diagonal(Block& a) {
    for (std::size_t j = 0; j < kN; ++j) {
        double d = a[kN * j + j];
        for (std::size_t k = 0; k < j; ++k) d -= a[kN * j + k] * a[kN * j + k];
        if (!(d > 0)) return false;
        a[kN * j + j] = std::sqrt(d);
        for (std::size_t i = j + 1; i < kN; ++i) {
            double v = a[kN * i + j];
            for (std::size_t k = 0; k < j; ++k) v -= a[kN * i + k] * a[kN * j + k];
            a[kN * i + j] = v / a[kN * j + j];
        }
    }
    return true;
}

Block transposed(const Block& a) {
    Block t;
    for (std::size_t i = 0; i < kN; ++i)
        for (std::size_t j = 0; j < kN; ++j) t[kN * j + i] = a[kN * i + j];
    return t;
}

}  // namespace

std::size_t BlockEquations::Row::find(std::uint32_t column, std::size_t from) {
    const auto place =
        std::lower_bound(columns.begin() + static_cast<std::ptrdiff_t>(from), columns.end(), column);
    const std::ptrdiff_t at = place - columns.begin();
    if (place == columns.end() || *place != column) {
        columns.insert(place, column);
        blocks.insert(blocks.begin() + at, Block{});
    }
    return static_cast<std::size_t>(at);
}

BlockEquations::BlockEquations(std::size_t groups) : rows_(groups) {
    for (std::size_t i = 0; i < groups; ++i) rows_[i].find(static_cast<std::uint32_t>(i));
}

Block& BlockEquations::at(std::size_t row, std::size_t column) {
    return rows_[row].blocks[rows_[row].find(static_cast<std::uint32_t>(column))];
}

std::uint64_t BlockEquations::bytes() const {
    std::uint64_t bytes = rows_.size() * sizeof(Row);
    for (const Row& row : rows_)
        bytes += row.blocks.capacity() * sizeof(Block) + row.columns.capacity() * sizeof(std::uint32_t);
    return bytes;
}

/// L with L Lᵀ = A, row by row: row k is a sparse triangular solve with the rows before it, whose pattern is
/// read from the elimination tree (T. A. Davis, Direct Methods for Sparse Linear Systems, 2006, chapter 4).
class BlockFactor {
  public:
    explicit BlockFactor(const BlockEquations& equations) : equations_(equations), n_(equations.groups()) {
        order();
        list_rows();
        analyse();
    }

    std::uint64_t bytes() const {
        return starts_[n_] * (sizeof(Block) + sizeof(std::uint32_t)) + n_ * 3 * sizeof(Block);
    }

    void compute(const CancelToken& cancel) {
        rows_.resize(starts_[n_]);
        transposed_.resize(starts_[n_]);
        diagonal_.resize(n_);
        filled_.assign(starts_.begin(), starts_.end() - 1);
        std::vector<Block> work(n_, Block{});
        for (std::uint32_t k = 0; k < n_; ++k) {
            cancel.check();
            for (const Entry& e : entries_of(k))
                work[e.column] = e.transposed ? transposed(*e.block) : *e.block;
            Block diagonal = equations_.rows_[original_[k]].blocks.back();
            for (const std::uint32_t j : reach_of(k)) {
                Block& y = work[j];
                divide_by_transposed(y, diagonal_[j]);
                for (std::size_t p = starts_[j]; p < filled_[j]; ++p)
                    subtract_product(work[rows_[p]], y, transposed_[p]);
                const Block y_transposed = transposed(y);
                subtract_product(diagonal, y, y_transposed);
                rows_[filled_[j]] = k;
                transposed_[filled_[j]++] = y_transposed;
                y = {};
            }
            if (!factor_diagonal(diagonal))
                throw InputError("the equations of the adjustment have no solution at knot " +
                                 std::to_string(original_[k]) + "; the clouds say nothing about it");
            diagonal_[k] = diagonal;
        }
    }

    std::vector<BlockVector> solve() const {
        std::vector<BlockVector> x(n_);
        for (std::size_t k = 0; k < n_; ++k) x[k] = equations_.rows_[original_[k]].right;
        for (std::size_t k = 0; k < n_; ++k) {
            for (std::size_t i = 0; i < kN; ++i) {
                for (std::size_t j = 0; j < i; ++j) x[k][i] -= diagonal_[k][kN * i + j] * x[k][j];
                x[k][i] /= diagonal_[k][kN * i + i];
            }
            for (std::size_t p = starts_[k]; p < starts_[k + 1]; ++p)
                for (std::size_t i = 0; i < kN; ++i)
                    for (std::size_t j = 0; j < kN; ++j)
                        x[rows_[p]][i] -= transposed_[p][kN * j + i] * x[k][j];
        }
        for (std::size_t k = n_; k-- > 0;) {
            for (std::size_t p = starts_[k]; p < starts_[k + 1]; ++p)
                for (std::size_t i = 0; i < kN; ++i)
                    for (std::size_t j = 0; j < kN; ++j)
                        x[k][j] -= transposed_[p][kN * j + i] * x[rows_[p]][i];
            for (std::size_t i = kN; i-- > 0;) {
                for (std::size_t j = i + 1; j < kN; ++j) x[k][i] -= diagonal_[k][kN * j + i] * x[k][j];
                x[k][i] /= diagonal_[k][kN * i + i];
            }
        }
        std::vector<BlockVector> unknowns(n_);
        for (std::size_t k = 0; k < n_; ++k) unknowns[original_[k]] = x[k];
        return unknowns;
    }

  private:
    /// A block of the matrix in the order of elimination, below the diagonal.
    struct Entry {
        std::uint32_t column;
        const Block* block;
        bool transposed;
    };
    std::span<const Entry> entries_of(std::size_t row) const {
        return std::span(entries_).subspan(entry_starts_[row], entry_starts_[row + 1] - entry_starts_[row]);
    }

    void order() {
        std::vector<Eigen::Triplet<double, int>> pattern;
        for (std::size_t row = 0; row < n_; ++row)
            for (const std::uint32_t column : equations_.rows_[row].columns) {
                pattern.emplace_back(static_cast<int>(row), static_cast<int>(column), 1.0);
                pattern.emplace_back(static_cast<int>(column), static_cast<int>(row), 1.0);
            }
        const auto n = static_cast<Eigen::Index>(n_);
        Eigen::SparseMatrix<double, Eigen::ColMajor, int> matrix(n, n);
        matrix.setFromTriplets(pattern.begin(), pattern.end());
        Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> permutation;
        Eigen::AMDOrdering<int>()(matrix, permutation);
        original_.resize(n_);
        position_.resize(n_);
        for (std::uint32_t k = 0; k < n_; ++k) {
            original_[k] = static_cast<std::uint32_t>(permutation.indices()[k]);
            position_[original_[k]] = k;
        }
    }

    template <class Visit>
    void visit_entries(const Visit& visit) const {
        for (std::size_t row = 0; row < n_; ++row) {
            const auto& [columns, blocks, right] = equations_.rows_[row];
            for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
                const std::uint32_t a = position_[row], b = position_[columns[i]];
                visit(std::max(a, b), Entry{std::min(a, b), &blocks[i], a < b});
            }
        }
    }

    void list_rows() {
        entry_starts_.assign(n_ + 1, 0);
        visit_entries([&](std::uint32_t row, const Entry&) { ++entry_starts_[row + 1]; });
        std::partial_sum(entry_starts_.begin(), entry_starts_.end(), entry_starts_.begin());
        entries_.resize(entry_starts_[n_]);
        std::vector<std::size_t> next(entry_starts_.begin(), entry_starts_.end() - 1);
        visit_entries([&](std::uint32_t row, const Entry& entry) { entries_[next[row]++] = entry; });
    }

    /// Elimination tree and the number of blocks in each column of the factor.
    void analyse() {
        constexpr std::uint32_t kNone = 0xffffffff;
        parent_.assign(n_, kNone);
        seen_.assign(n_, kNone);
        std::vector<std::uint32_t> ancestor(n_, kNone);
        for (std::uint32_t k = 0; k < n_; ++k)
            for (const Entry& e : entries_of(k))
                for (std::uint32_t j = e.column; j != kNone && j < k;) {
                    const std::uint32_t next = ancestor[j];
                    ancestor[j] = k;
                    if (next == kNone) parent_[j] = k;
                    j = next;
                }
        starts_.assign(n_ + 1, 0);
        for (std::uint32_t k = 0; k < n_; ++k)
            for (const std::uint32_t j : reach_of(k)) ++starts_[j + 1];
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        std::fill(seen_.begin(), seen_.end(), kNone);
    }

    /// Columns of row k of the factor, in ascending order, which is an order of elimination.
    std::span<const std::uint32_t> reach_of(std::uint32_t k) {
        reach_.clear();
        seen_[k] = k;
        for (const Entry& e : entries_of(k))
            for (std::uint32_t j = e.column; seen_[j] != k; j = parent_[j]) {
                seen_[j] = k;
                reach_.push_back(j);
            }
        std::sort(reach_.begin(), reach_.end());
        return reach_;
    }

    const BlockEquations& equations_;
    std::size_t n_;
    std::vector<std::uint32_t> original_, position_;
    std::vector<std::size_t> entry_starts_, starts_, filled_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> parent_, seen_, reach_, rows_;
    std::vector<Block> transposed_, diagonal_;  ///< of L; what is below the diagonal is kept transposed
};

std::vector<BlockVector> BlockEquations::solve(std::uint64_t most_bytes, const CancelToken& cancel) const {
    BlockFactor factor(*this);
    if (factor.bytes() > most_bytes)
        throw ResourceError("the equations of the adjustment need " + format_bytes(factor.bytes()) +
                            " of memory and may have " + format_bytes(most_bytes) +
                            "; give more --memory, or fewer unknowns with a larger --knots");
    factor.compute(cancel);
    return factor.solve();
}

}  // namespace citysplat::adjust
