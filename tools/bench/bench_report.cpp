#include "bench/bench_report.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace citysplat::bench {

namespace {

void require_number(double value, const std::string& what) {
    if (!std::isfinite(value))
        throw InputError("the figure of \"" + what + "\" is not a number: there was nothing to measure");
}

std::string as_text(const Ratio& ratio) { return three_digits(ratio.value) + " × " + ratio.baseline; }

}  // namespace

void Report::text(const std::string& line) { std::printf("%s\n", line.c_str()); }

void Report::detail(const Row& row) {
    require_number(row.figure, row.what);
    if (row.ratio) require_number(row.ratio->value, row.what);
    std::printf("%-48s %8s %-9s", row.what.c_str(), three_digits(row.figure).c_str(), row.unit.c_str());
    if (row.ratio) std::printf("  %s", as_text(*row.ratio).c_str());
    if (!row.note.empty()) std::printf("  (%s)", row.note.c_str());
    std::printf("\n");
}

void Report::row(const Row& row) {
    detail(row);
    if (table_.empty()) return;
    std::ofstream file(table_, std::ios::app);
    file << "| " << row.what << " | " << three_digits(row.figure) << ' ' << row.unit << " | "
         << (row.ratio ? as_text(*row.ratio) : "") << " | " << (row.depends_on_machine ? "yes" : "no")
         << " |\n";
    if (!file.flush()) throw IoError("cannot append to " + table_.string());
}

double ratio(double part, double whole) {
    const double quotient = part / whole;
    if (!std::isfinite(quotient))
        throw InputError("there was nothing to measure (a share of " + std::to_string(part) + " in " +
                         std::to_string(whole) + "); give a larger input");
    return quotient;
}

std::string three_digits(double value) {
    if (value == 0) return "0";
    const int whole_digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", std::clamp(3 - whole_digits, 0, 6), value);
    return text;
}

void require_hits(std::uint64_t hits, std::uint64_t rays, const std::string& advice) {
    if (static_cast<double>(hits) >= 0.01 * static_cast<double>(rays) && rays > 0) return;
    throw InputError(std::to_string(hits) + " of " + std::to_string(rays) +
                     " rays met a splat: a figure of rays through empty space says nothing; " + advice);
}

}  // namespace citysplat::bench
