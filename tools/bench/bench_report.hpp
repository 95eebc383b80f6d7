#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace citysplat::bench {

/// A figure as a multiple of what the same run measured for something well known.
struct Ratio {
    double value;
    std::string baseline;  ///< as in "0.85 × the bare Embree loop"
};

/// One measured thing.
struct Row {
    std::string what;
    double figure;
    std::string unit;
    std::optional<Ratio> ratio{};
    bool depends_on_machine = true;
    std::string note{};  ///< for the terminal only
};

/// What a bench prints: every figure in one form, none that is not a number, none twice.
class Report {
  public:
    /// Rows are appended to the file `table`, if it has a name, as lines of a Markdown table.
    explicit Report(std::filesystem::path table) : table_(std::move(table)) {}

    /// A heading or a remark.
    void text(const std::string& line);
    /// A row of the README's table. Throws InputError when a figure is not a number.
    void row(const Row& row);
    /// A row for the terminal only.
    void detail(const Row& row);

  private:
    std::filesystem::path table_;
};

/// part / whole. Throws InputError when there is no such number: there was nothing to measure.
double ratio(double part, double whole);

/// The text of a number with three significant digits or, from 1000 on, all of its whole ones.
std::string three_digits(double value);

/// Throws InputError when less than 1 % of the rays met something: the figures would be those of empty space.
/// `advice` is the way out.
void require_hits(std::uint64_t hits, std::uint64_t rays, const std::string& advice);

}  // namespace citysplat::bench
