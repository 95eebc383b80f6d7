#pragma once

#include "io/bag/mcap_writer.hpp"
#include "model/spline/pose_spline.hpp"
#include "sim/bag/bag_clock.hpp"
#include "sim/bag/chunk_queue.hpp"
#include "sim/drive/simulation.hpp"
#include "sim/output/run_directory.hpp"
#include "sim/output/scan_writer.hpp"
#include "sim/scan/scanner.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::sim {

/// A sensor whose scans go into a bag. What is referred to must outlive the writer.
struct BagSensor {
    std::string name;     ///< "roof", or "car/roof" on a vehicle; its topic and its frame
    std::string vehicle;  ///< empty: that of the scenario itself
    const SensorRun& run;
    const Trajectory& trajectory;
    Schedule schedule;
    const PoseSpline* spline = nullptr;  ///< of which the trajectory is a sample; nullptr: no IMU
    ScanWriterOptions output;            ///< points, keep_all, recorded and several count
};

struct BagOptions {
    std::filesystem::path directory;
    std::string crs;
    std::string clock = "unknown";     ///< BagClock::named()
    std::string compression = "none";  ///< of chunks: none or zstd
    bool overwrite = false;
};

/// Writes the scans of any number of sensors into a rosbag2 directory (docs/ros.md):
///
///   bag_0.mcap      the bag; bag_0.mcap.part until it is finished, which can be read to its last whole chunk
///   metadata.yaml   version 5
///   run.toml        what of all this was written
///
/// Topics are /NAME/points, /tf, /tf_static and, for each vehicle, /odom and /imu/data. Frames are world →
/// map → base_link → NAME; map begins at whole metres, so that coordinates in it have room in a float. A scan
/// is stamped with its beginning and logged at its end, poses are logged at their own time and stand before
/// the scans they belong to. The bytes depend on the scans alone, not on threads.
class BagWriter {
  public:
    /// Throws UsageError for options that a bag has no place for, and what RunDirectory throws.
    BagWriter(const BagOptions& options, std::vector<BagSensor> sensors);
    ~BagWriter();

    /// Where the scans of that sensor go. One sensor's scans at a time.
    ScanSink& sink(std::size_t sensor) const;
    /// What a user should hear: about the epoch of stamps, and why there is no IMU.
    std::vector<std::string> notes() const;
    /// Requires that the runs of all sensors are over. The bag gets its name.
    void finish();

    /// Throws what the constructor would about one sensor alone.
    static void check(const BagSensor& sensor);

  private:
    class Topic;
    class Sink;
    /// The poses of a vehicle on their way into the bag.
    struct Way {
        std::string base_frame;
        const Trajectory* trajectory;
        const PoseSpline* spline;
        double begin_s, end_s;       ///< of all scans on it
        std::size_t odometry, imu;   ///< their channels
        std::size_t next = 0;        ///< pose of the trajectory
        std::uint64_t next_imu = 0;  ///< reading, counted from begin_s
    };

    std::size_t add_channel(std::string topic, io::RosType type, bool latched = false);
    std::size_t way_of(const BagSensor& sensor, double end_s);
    std::uint32_t next_number(std::size_t channel) { return numbers_[channel]++; }
    void put_static_frames();
    /// Poses and IMU readings until a scan that ends at `end_s` can be placed, and some more.
    void put_poses(Way& way, double end_s);
    void put_pose(io::McapChunk& chunk, const Way& way, std::size_t pose);
    void put_reading(io::McapChunk& chunk, const Way& way, double time_s);
    void append(io::McapChunk chunk);
    std::filesystem::path part() const;
    /// What a reader of ours wants to know: origin, clock, system of coordinates.
    std::vector<std::pair<std::string, std::string>> facts() const;

    BagOptions options_;
    io::ChunkCompression compression_;
    std::vector<BagSensor> sensors_;
    BagClock clock_;
    Vec3d origin_m_;  ///< of map
    std::vector<io::BagChannel> channels_;
    std::vector<std::uint32_t> numbers_;  ///< messages so far, by channel
    std::size_t tf_, tf_static_;
    std::vector<Way> ways_;
    std::vector<std::unique_ptr<Sink>> sinks_;
    RunDirectory run_;
    io::McapWriter writer_;
    ChunkQueue queue_;
};

/// A name with nothing in it that topics and frames of ROS may not have.
std::string ros_name(const std::string& name);

}  // namespace citysplat::sim
