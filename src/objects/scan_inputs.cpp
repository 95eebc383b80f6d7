#include "objects/scan_inputs.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace citysplat::objects {

namespace {

constexpr double kLongestSweep_s = 1;
/// A file with more points is read in pieces without asking how long it lasts.
constexpr std::uint64_t kMostPointsOfSweep = 4'000'000;

/// Appends the columns that objects need.
void append(PointBatch& to, const PointBatch& more) {
    const auto add = [](auto& column, const auto& values) {
        column.insert(column.end(), values.begin(), values.end());
    };
    add(to.x, more.x), add(to.y, more.y), add(to.z, more.z);
    add(to.gps_time, more.gps_time), add(to.intensity, more.intensity), add(to.label, more.label);
    add(to.instance, more.instance);
    add(to.sensor, more.sensor), add(to.withheld, more.withheld);
}

/// Makes a piece of the points; false when there are none.
bool complete(const ScanInputs& inputs, const InputSource& source, ScanPiece& piece) {
    PointBatch& p = piece.points;
    if (!p.withheld.empty()) p.remove(std::vector<std::uint8_t>(p.withheld));
    if (p.size() == 0) return false;
    if (p.gps_time.empty())
        throw InputError(source.path.string() +
                         ": its points have no times, so nobody knows where a moving object was when they "
                         "were measured; give the folder of the drive instead of single files, or clouds "
                         "with a time column");
    const auto [first, last] = std::minmax_element(p.gps_time.begin(), p.gps_time.end());
    piece.begin_s = *first, piece.end_s = *last;
    if (p.sensor.empty() && (source.drive || !inputs.trajectory.empty())) {
        SensorPath path(source.drive ? &source.drive->trajectory : &inputs.trajectory);
        std::vector<Vec3d> sensors(p.size());
        bool all = true;
        for (std::size_t i = 0; i < p.size() && all; ++i) {
            const auto at = path.at(p.gps_time[i]);
            all = at.has_value();
            if (all) sensors[i] = *at;
        }
        if (all) p.sensor = std::move(sensors);
    }
    return true;
}

}  // namespace

void read_pieces(const ScanInputs& inputs, std::size_t index, const CancelToken& cancel,
                 const std::function<void(const ScanPiece&)>& use) {
    const InputSource& source = inputs.sources[index];
    const auto file = source.open(inputs.reading);
    const bool at_once = file->info().points <= kMostPointsOfSweep;
    ScanPiece piece;
    PointBatch batch;
    for (std::size_t block = 0; block < file->block_count(); ++block) {
        cancel.check();
        file->read_block(block, batch);
        if (!at_once) piece.points.clear();
        append(piece.points, batch);
        if (!at_once && complete(inputs, source, piece)) use(piece);
    }
    if (!at_once || !complete(inputs, source, piece)) return;
    piece.sweep = piece.end_s - piece.begin_s <= kLongestSweep_s;
    use(piece);
}

}  // namespace citysplat::objects
