#pragma once

#include "io/drive/drive_formats.hpp"
#include "io/drive/scan_order.hpp"

#include <optional>
#include <string>
#include <vector>

namespace citysplat::io {

/// How the sensor of a drive turns, as far as some of its scans tell. For scans in the frame of the sensor.
struct SensorTurn {
    ScanOrder order;             ///< by_firing false: nothing could be measured, and the rest was assumed
    std::string from;            ///< how it is known, for people
    double columns = 0;          ///< firings of all beams a turn; 0: not known
    std::size_t scan = 0;        ///< the one that was looked at most closely
    std::vector<Vec3d> records;  ///< of that scan
};

/// Looks at a few of the scans, most closely at scan `best`. Where their order tells nothing the sensor is
/// taken to turn clockwise, from the rear over the front to the rear.
SensorTurn measure_turn(const std::vector<std::filesystem::path>& scans, std::size_t best,
                        const DriveRequest& request);

/// The turn's time where nobody says: an HDL-32E fires all its beams every 46.08 µs.
std::optional<double> period_by_firings_s(const SensorTurn& turn);

/// Sets frame, times and turn of a sweep whose pose is that of `pose_s`.
struct SweepTiming {
    DriveOptions::Compensated compensated;
    double period_s;
};
Sweep sweep_at(double pose_s, const SweepTiming& timing, const ScanOrder& order);

/// Scans that lack firings, as after a lost packet, have no times by record: their times become those of the
/// directions. Says how many in the facts. Does nothing where the records are not all firings.
void time_broken_scans(Drive& drive, const SensorTurn& turn, const DriveRequest& request);

/// To which moment a scan was compensated, by its records without a return: they lie where the sensor was
/// when it fired. Nothing when there are none or the car hardly moved.
std::optional<DriveOptions::Compensated> compensation_of(const SensorTurn& turn, double pose_s,
                                                         double period_s, const SmoothPath& path);

}  // namespace citysplat::io
