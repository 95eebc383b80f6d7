#include "adjust/adjust.hpp"

#include "adjust/datum.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace citysplat::adjust {

namespace {

/// Coarse to fine: what is half a metre off is found in large cells, the last centimetre in small ones.
constexpr std::array<Level, 10> kLevels{{{2.0, 0.5},
                                         {2.0, 0.3},
                                         {1.0, 0.3},
                                         {1.0, 0.2},
                                         {1.0, 0.1},
                                         {0.5, 0.1},
                                         {0.5, 0.05},
                                         {0.5, 0.05},
                                         {0.5, 0.05},
                                         {0.5, 0.05}}};

/// How far the corrections of a drive go: variances of shifts (m²) and of turns (rad²).
struct Extent {
    double shift = 0, turn = 0;
};
/// What is expected of the corrections of a drive. It is learned: a trajectory that is nearly right is
/// assumed at first, and after each round what the corrections did. So poses that drift or jump are followed
/// where the clouds are sure of it, and noise is not where they are not.
struct Expectation {
    Extent value{1e-4, 3e-7};   ///< for each second of the drive
    Extent rate{1e-5, 3e-8};    ///< change in a second
    Extent wander{1e-4, 3e-6};  ///< change of the rate in a second
};
constexpr Expectation kLeast{};
/// More than the last round did is expected of the next one: expectations hold back.
constexpr double kGenerous = 4;
constexpr Extent kMostWander{0.1, 3e-3};

constexpr std::uint64_t kLeastCells = 50;

/// An adjustment explains thick surfaces when no more than this share of them is left, or of their median
/// gap; or when that is small in itself: then poses are not what makes the others thick.
constexpr double kExplained = 0.8, kThin_m = 0.02;

/// Navigation systems drift by decimetres, and scales of maps differ by 0.04 %. A drive that was stretched by
/// more, and by more than centimetres, is worth a look; far more is a sensor whose ranges are wrong.
constexpr double kStretch = 0.005, kStretch_m = 0.05;
constexpr double kMostStretch = 0.02, kMostStretch_m = 0.3;
constexpr const char* kStretchCauses =
    " by the adjustment. Ranges that are as much too long or too short ask for the same, and clouds cannot "
    "tell "
    "which it is; is the range of the sensor calibrated, and are the poses in metres?";

std::string in_cm(double metres) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f cm", 100 * metres);
    return text.data();
}

std::string in_percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
    return text.data();
}

BlockVector unknowns_of(const KnotCorrection& c) {
    return {c.shift_m.x, c.shift_m.y, c.shift_m.z, c.turn_rad.x, c.turn_rad.y, c.turn_rad.z};
}

/// Adds weight · (Σ factor · unknown)², the unknowns counted from their present values; the same for each of
/// three components starting at `component`. Knots must ascend.
struct PriorTerm {
    std::size_t knot;
    double factor;
};
void add_prior(BlockEquations& equations, std::span<const PriorTerm> terms,
               std::span<const BlockVector> present, std::array<double, 2> weights) {
    for (std::size_t u = 0; u < kUnknowns; ++u) {
        const double weight = weights[u / 3];
        double value = 0;
        for (std::size_t i = 0; i < terms.size(); ++i) value += terms[i].factor * present[i][u];
        for (std::size_t i = 0; i < terms.size(); ++i) {
            equations.row(terms[i].knot).right[u] -= weight * terms[i].factor * value;
            for (std::size_t j = 0; j <= i; ++j)
                equations.at(terms[i].knot, terms[j].knot)[(kUnknowns + 1) * u] +=
                    weight * terms[i].factor * terms[j].factor;
        }
    }
}

/// Seconds before and after a knot.
struct Around {
    double before_s, after_s;
    double seconds() const { return (before_s + after_s) / 2; }
};
Around around(std::span<const double> times_s, std::size_t i) {
    return {i > 0 ? times_s[i] - times_s[i - 1] : 0,
            i + 1 < times_s.size() ? times_s[i + 1] - times_s[i] : 0};
}

/// What the corrections of a drive did.
Expectation expectation_of(const Correction& drive) {
    const auto times = drive.knot_times_s();
    const auto knots = drive.knots();
    Expectation sums{{}, {}, {}};
    double values = 0, rates = 0, wanders = 0;
    const auto add = [](Extent& sum, Vec3d shift, Vec3d turn, double divisor) {
        sum.shift += dot(shift, shift) / 3 / divisor;
        sum.turn += dot(turn, turn) / 3 / divisor;
    };
    for (std::size_t i = 0; i < times.size(); ++i) {
        const Around at = around(times, i);
        add(sums.value, knots[i].shift_m, knots[i].turn_rad, 1);
        ++values;
        if (at.after_s == 0) continue;
        const auto rate = [&](std::size_t k, double seconds) {
            return KnotCorrection{(1 / seconds) * (knots[k + 1].shift_m - knots[k].shift_m),
                                  (1 / seconds) * (knots[k + 1].turn_rad - knots[k].turn_rad)};
        };
        const KnotCorrection after = rate(i, at.after_s);
        add(sums.rate, after.shift_m, after.turn_rad, 1);
        ++rates;
        if (at.before_s == 0) continue;
        const KnotCorrection before = rate(i - 1, at.before_s);
        add(sums.wander, after.shift_m - before.shift_m, after.turn_rad - before.turn_rad, at.seconds());
        ++wanders;
    }
    const auto learned = [](const Extent& sum, double count, const Extent& least) {
        const double factor = kGenerous / std::max(count, 1.0);
        return Extent{std::max(least.shift, factor * sum.shift), std::max(least.turn, factor * sum.turn)};
    };
    Expectation result{learned(sums.value, values, kLeast.value), learned(sums.rate, rates, kLeast.rate),
                       learned(sums.wander, wanders, kLeast.wander)};
    result.wander.shift = std::min(result.wander.shift, kMostWander.shift);
    result.wander.turn = std::min(result.wander.turn, kMostWander.turn);
    return result;
}

void add_priors(BlockEquations& equations, const Correction& drive, std::size_t first_knot,
                const Expectation& expected) {
    const auto times = drive.knot_times_s();
    std::vector<BlockVector> present;
    for (const KnotCorrection& knot : drive.knots()) present.push_back(unknowns_of(knot));
    const auto add = [&](std::span<const PriorTerm> terms, const Extent& variance, double factor) {
        add_prior(equations, terms, std::span(present).subspan(terms[0].knot - first_knot, terms.size()),
                  {factor / variance.shift, factor / variance.turn});
    };
    for (std::size_t i = 0; i < times.size(); ++i) {
        const Around at = around(times, i);
        const std::size_t knot = first_knot + i;
        const PriorTerm value[]{{knot, 1.0}};
        add(value, expected.value, times.size() == 1 ? 1 : at.seconds());
        if (at.after_s == 0) continue;
        const PriorTerm rate[]{{knot, -1.0}, {knot + 1, 1.0}};
        add(rate, expected.rate, 1 / at.after_s);
        if (at.before_s == 0) continue;
        const PriorTerm wander[]{{knot - 1, 1 / at.before_s},
                                 {knot, -1 / at.before_s - 1 / at.after_s},
                                 {knot + 1, 1 / at.after_s}};
        add(wander, expected.wander, 1 / at.seconds());
    }
}

std::vector<Correction> make_corrections(std::span<const AdjustDrive> drives, double& knots_s) {
    for (;; knots_s *= 2) {
        std::vector<Correction> corrections;
        std::size_t knots = 0;
        for (const AdjustDrive& drive : drives) {
            corrections.emplace_back(drive.given, knots_s);
            knots += corrections.back().knots().size();
        }
        if (knots <= AdjustOptions::kMostKnots) return corrections;
        if (knots_s > AdjustOptions::kKnots_s.most)
            throw InputError("these trajectories are too long to be adjusted at once; adjust them in parts");
    }
}

/// What is left of the memory for all else. Sights stay as long as the adjustment does.
std::uint64_t memory_beside_sights(std::size_t slots, std::uint64_t memory_bytes) {
    const std::uint64_t bytes = Sights::bytes_for(slots);
    if (bytes > memory_bytes / 2)
        throw ResourceError("what these drives saw needs " + format_bytes(bytes) + ", more than half of " +
                            format_bytes(memory_bytes) +
                            "; give more --memory, or fewer unknowns with a larger --knots");
    return memory_bytes - bytes;
}

/// The scale s for which Σ |shift − mean shift − s (position − mean position)|² is least. Turns do not
/// disturb it: what they do to a position is at right angles to it.
void measure_stretch(DriveChange& change, const Correction& correction) {
    const auto knots = correction.knots();
    const double each = 1 / static_cast<double>(knots.size());
    Vec3d middle{0, 0, 0}, shift{0, 0, 0};
    for (std::size_t i = 0; i < knots.size(); ++i) {
        middle = middle + each * (correction.knot_position_m(i) - correction.knot_position_m(0));
        shift = shift + each * knots[i].shift_m;
    }
    double along = 0, squares = 0;
    for (std::size_t i = 0; i < knots.size(); ++i) {
        const Vec3d from_middle = correction.knot_position_m(i) - correction.knot_position_m(0) - middle;
        along += dot(from_middle, knots[i].shift_m - shift);
        squares += dot(from_middle, from_middle);
    }
    if (squares == 0) return;
    change.stretch = along / squares;
    change.extent_m = std::sqrt(each * squares);
}

DriveChange change_of(const std::string& name, const Correction& correction) {
    DriveChange change{.name = name, .adjusted = correction.corrected(), .knots = correction.knots().size()};
    for (std::size_t i = 0; i < change.knots; ++i) {
        const KnotCorrection& knot = correction.knots()[i];
        const double shift = length(knot.shift_m), turn = length(knot.turn_rad);
        const double time_s = correction.knot_times_s()[i];
        change.mean_shift_m += shift / static_cast<double>(change.knots);
        change.mean_turn_rad += turn / static_cast<double>(change.knots);
        if (shift > change.most_shift_m) change.most_shift_m = shift, change.most_shift_s = time_s;
        if (turn > change.most_turn_rad) change.most_turn_rad = turn, change.most_turn_s = time_s;
    }
    measure_stretch(change, correction);
    return change;
}

/// How thick surfaces were and are. Dense traffic makes cells thick whatever the poses are: then the median
/// tells whether these are better.
struct Improvement {
    Improvement(const Thickness& before, const Thickness& after)
        : thick_before(before.share_thick()),
          thick_after(after.share_thick()),
          median_before_m(before.quantile_m(0.5)),
          median_after_m(after.quantile_m(0.5)) {}
    bool median_is_better() const { return median_after_m <= kExplained * median_before_m; }
    std::string text() const {
        return "thicker than 10 cm are " + in_percent(thick_after) +
               " of the flat cells that were seen twice, " + in_percent(thick_before) +
               " before; half of them differ by up to " + in_cm(median_after_m) + ", " +
               in_cm(median_before_m) + " before";
    }

    double thick_before, thick_after, median_before_m, median_after_m;
};

/// What a user should look at although the result may be used.
std::optional<std::string> stretch_warning(const DriveChange& drive) {
    if (std::fabs(drive.stretch) <= kStretch || std::fabs(drive.stretch) * drive.extent_m <= kStretch_m)
        return std::nullopt;
    return drive.name + " was made " + in_percent(std::fabs(drive.stretch)) +
           (drive.stretch > 0 ? " longer" : " shorter") + kStretchCauses;
}

std::optional<std::string> refusal_of(const AdjustReport& report, const AdjustOptions& options) {
    for (const DriveChange& drive : report.drives) {
        if (std::fabs(drive.stretch) > kMostStretch &&
            std::fabs(drive.stretch) * drive.extent_m > kMostStretch_m)
            return drive.name + " would be made " + in_percent(std::fabs(drive.stretch)) +
                   (drive.stretch > 0 ? " longer" : " shorter") + kStretchCauses;
        if (drive.most_shift_m > options.most_shift_m)
            return drive.name + " would move by " + in_cm(drive.most_shift_m) + " at " +
                   format_number(drive.most_shift_s) +
                   " s, more than --most-shift allows; is it the right trajectory for these clouds?";
        const double turn_deg = drive.most_turn_rad * exact::kDegreesPerRad;
        if (turn_deg > options.most_turn_deg)
            return drive.name + " would turn by " + format_number(std::round(turn_deg * 100) / 100) +
                   " degrees at " + format_number(drive.most_turn_s) +
                   " s, more than --most-turn allows; is it the right trajectory for these clouds?";
    }
    if (report.after.cells() < kLeastCells)
        return "only " + std::to_string(report.after.cells()) +
               " flat cells were seen in two different seconds, too few to judge an adjustment by";
    const Improvement thinner(report.before, report.after);
    if (thinner.median_after_m > thinner.median_before_m + 0.002 ||
        (thinner.thick_after > thinner.thick_before + 0.002 && !thinner.median_is_better()))
        return "the adjustment made surfaces thicker, not thinner (" + thinner.text() + ")";
    if (thinner.thick_before > kMostThick && thinner.thick_after > kExplained * thinner.thick_before &&
        !thinner.median_is_better() && thinner.median_after_m > kThin_m)
        return "corrections of the poses do not explain why surfaces are thick (" + thinner.text() +
               "); is the time of the points that of the trajectory, and are the clouds free of a motion "
               "that was not compensated?";
    return std::nullopt;
}

/// What stays thick although most surfaces are thin.
std::optional<std::string> thickness_warning(const AdjustReport& report) {
    const Improvement thinner(report.before, report.after);
    if (thinner.thick_after <= kMostThick || thinner.thick_after <= kExplained * thinner.thick_before)
        return std::nullopt;
    return "some surfaces stay thick (" + thinner.text() +
           "): things that moved, or what no correction of poses explains";
}

}  // namespace

AdjustReport adjust(std::span<const AdjustDrive> drives, const AdjustOptions& options,
                    const CancelToken& cancel, Progress& progress) {
    AdjustReport report;
    report.knots_s = options.knots_s;
    Corrections corrections(make_corrections(drives, report.knots_s));
    std::vector<PatchStore::Drive> sources;
    for (std::size_t d = 0; d < drives.size(); ++d)
        sources.push_back({corrections.drive(d), drives[d].clouds});
    const std::uint64_t memory = memory_beside_sights(corrections.slots(), options.memory_bytes);
    Sights sights(corrections.slots());
    const PatchStore patches(sources, options.points, {options.scratch, memory}, sights, {cancel, progress});
    report.points = patches.counts();
    report.patches = patches.patches();
    report.before = measure_thickness(patches, corrections, memory / 4, cancel);
    std::vector<bool> seen(corrections.knots());
    std::vector<Expectation> expected(corrections.drives());
    Progress::Stage stage(progress, "adjust", kLevels.size(), "rounds");
    for (const Level& level : kLevels) {
        BlockEquations equations(corrections.knots());
        report.cells = add_cells(equations, {patches, corrections, sights, level, memory}, cancel);
        for (std::size_t k = 0; k < seen.size(); ++k) seen[k] = equations.at(k, k) != Block{};
        for (std::size_t d = 0; d < corrections.drives(); ++d)
            add_priors(equations, corrections.drive(d), corrections.first_knot(d), expected[d]);
        const auto steps = equations.solve(memory / 3, cancel);
        for (std::size_t d = 0; d < corrections.drives(); ++d) {
            const auto knots = corrections.drive(d).knots();
            for (std::size_t i = 0; i < knots.size(); ++i) {
                const BlockVector& step = steps[corrections.first_knot(d) + i];
                knots[i].shift_m = knots[i].shift_m + Vec3d{step[0], step[1], step[2]};
                knots[i].turn_rad = knots[i].turn_rad + Vec3d{step[3], step[4], step[5]};
            }
        }
        hold_datum(corrections, tied_drives(equations, corrections), seen);
        for (std::size_t d = 0; d < corrections.drives(); ++d)
            expected[d] = expectation_of(corrections.drive(d));
        stage.advance(1);
    }
    if (report.cells.cells < kLeastCells)
        throw InputError("only " + std::to_string(report.cells.cells) +
                         " flat places were seen at two times or more, which is too little to adjust a "
                         "trajectory by (of " +
                         std::to_string(report.points.read) + " points " +
                         std::to_string(report.points.without_time) + " have no time and " +
                         std::to_string(report.points.outside_trajectory) +
                         " are outside the times of the trajectory)");
    report.after = measure_thickness(patches, corrections, memory / 4, cancel);
    for (std::size_t d = 0; d < corrections.drives(); ++d) {
        report.drives.push_back(change_of(drives[d].name, corrections.drive(d)));
        const auto first = seen.begin() + static_cast<std::ptrdiff_t>(corrections.first_knot(d));
        report.drives.back().knots_seen = static_cast<std::size_t>(
            std::count(first, first + static_cast<std::ptrdiff_t>(report.drives.back().knots), true));
    }
    report.refusal = refusal_of(report, options);
    if (!report.refusal)
        for (const DriveChange& drive : report.drives)
            if (const auto stretched = stretch_warning(drive)) report.warnings.push_back(*stretched);
    if (const auto thick = thickness_warning(report); thick && !report.refusal)
        report.warnings.push_back(*thick);
    return report;
}

}  // namespace citysplat::adjust
