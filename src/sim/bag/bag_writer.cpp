#include "sim/bag/bag_writer.hpp"

#include "core/error.hpp"
#include "io/bag/bag_metadata.hpp"
#include "sim/uav/imu.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

namespace citysplat::sim {

namespace {

using io::McapChunk;
using io::RosType;

constexpr const char *kBagFile = "bag_0.mcap", *kMetadataFile = "metadata.yaml";
constexpr double kImuRate_hz = 200;
/// Poses are written this far ahead, so that their chunks are not too small.
constexpr double kAhead_s = 2;

std::size_t beams_of(const Sensor& sensor) {
    if (const auto* head = std::get_if<SpinningHead>(&sensor.rays)) return head->beams.size();
    if (const auto* rosette = std::get_if<RosettePattern>(&sensor.rays)) return rosette->lines;
    if (const auto* nodding = std::get_if<NoddingPattern>(&sensor.rays)) return nodding->lines;
    if (const auto* camera = std::get_if<PinholePattern>(&sensor.rays)) return camera->rows;
    std::uint32_t most = 0;
    for (const Firing& firing : std::get<RayTable>(sensor.rays).firings) most = std::max(most, firing.beam);
    return std::size_t{most} + 1;
}

CloudLayout layout_of(const BagSensor& sensor) {
    CloudLayout layout;
    layout.frame = CloudFrame::firing;
    layout.by_pulse = true;
    layout.keep_all = sensor.output.keep_all;
    layout.recorded = sensor.output.recorded;
    layout.several = sensor.output.several;
    return layout;
}

io::ChunkCompression compression_named(const std::string& name) {
    if (name == "none") return io::ChunkCompression::none;
    if (name == "zstd") return io::ChunkCompression::zstd;
    throw UsageError("compression \"" + name + "\" is not one of none, zstd");
}

double first_begin_s(const std::vector<BagSensor>& sensors) {
    double begin_s = std::numeric_limits<double>::infinity();
    for (const BagSensor& s : sensors)
        begin_s = std::min(begin_s, std::max(s.schedule.from_s, s.trajectory.begin_s()));
    return begin_s;
}

Vec3d whole_metres_of(const Trajectory& trajectory) {
    const Vec3d v = trajectory.poses().front().world_from_body.translation;
    return {std::floor(v.x), std::floor(v.y), std::floor(v.z)};
}

std::vector<BagSensor> checked(std::vector<BagSensor> sensors) {
    std::map<std::string, std::string> names;
    for (const BagSensor& sensor : sensors) {
        BagWriter::check(sensor);
        const auto [other, fresh] = names.emplace(ros_name(sensor.name), sensor.name);
        if (!fresh)
            throw ConfigError("sensors \"" + other->second + "\" and \"" + sensor.name +
                              "\" would have the same topic in a bag, /" + other->first +
                              "/points; give one of them another name");
    }
    return sensors;
}

}  // namespace

std::string ros_name(const std::string& name) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::string out;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool begins = out.empty() || out.back() == '/';
        if (c == '/' && begins) continue;
        if (begins && is_digit(c)) out += "sensor_";
        const char kept = letter || is_digit(c) || c == '/' ? c : '_';
        if (kept == '_' && !out.empty() && out.back() == '_') continue;
        out += kept;
    }
    while (!out.empty() && (out.back() == '_' || out.back() == '/')) out.pop_back();
    return out.empty() ? "sensor" : out;
}

void BagWriter::check(const BagSensor& sensor) {
    const ScanWriterOptions& o = sensor.output;
    const auto refuse = [&](const std::string& what) {
        throw UsageError("sensor \"" + sensor.name + "\", format rosbag2: " + what);
    };
    if (!make_bag_format(o.points))
        refuse("points \"" + o.points +
               "\" is not one of velodyne, ouster, ouster-u8, autoware, livox, full");
    if (o.frame != "auto")
        refuse("points of a bag are in the frame of the sensor when they were fired; tf says where that is");
    if (o.accumulate || !o.scans)
        refuse("a bag has its scans and nothing else; take another format for a cloud");
    if (o.keep_all && o.points != "full")
        refuse("rays without a return have a place in points \"full\" alone");
    if (o.recorded && o.points != "full")
        refuse("how surfaces were recorded has a place in points \"full\" alone");
    if ((o.points == "livox" || o.points == "ouster-u8") && beams_of(sensor.run.sensor) > 256)
        refuse("points \"" + o.points + "\" have room for 256 lasers, and the sensor has " +
               std::to_string(beams_of(sensor.run.sensor)));
}

/// Makes chunks of the scans of one sensor.
class BagWriter::Sink final : public ScanSink {
  public:
    Sink(BagWriter& bag, std::size_t sensor, std::size_t channel, std::size_t way)
        : bag_(bag),
          channel_(bag.channels_[channel]),
          way_(way),
          frame_(ros_name(bag.sensors_[sensor].name)),
          sweep_s_(sweep_seconds(bag.sensors_[sensor].run.sensor)),
          points_(bag.sensors_[sensor].output.points),
          layout_(layout_of(bag.sensors_[sensor])),
          format_(make_bag_format(points_)),
          fields_(bag_fields(points_, layout_)) {}

    void consume(const Scan& scan) override {
        McapChunk chunk = encode(scan);
        chunk.seal(bag_.compression_);
        const std::lock_guard lock(mutex_);
        ready_.emplace(scan.index, std::move(chunk));
    }
    void conclude(const Scan& scan) override {
        bag_.put_poses(bag_.ways_[way_], scan.time_s + sweep_s_);
        std::unique_lock lock(mutex_);
        auto chunk = ready_.extract(scan.index);
        lock.unlock();
        bag_.queue_.put(std::move(chunk.mapped()));
    }

  private:
    McapChunk encode(const Scan& scan) const {
        McapChunk chunk(bag_.queue_.take_memory());
        const std::int64_t begin_ns = bag_.clock_.stamp_ns(scan.time_s),
                           end_ns = bag_.clock_.stamp_ns(scan.time_s + sweep_s_);
        chunk.add_channel(channel_);
        chunk.begin_message(channel_, static_cast<std::uint32_t>(scan.index), end_ns);
        std::vector<std::byte>& out = chunk.content();
        const std::size_t head_at = out.size();
        put_head(out, begin_ns, 0);
        const std::size_t points_at = out.size();
        out.resize(points_at + scan.returns.size() * format_->most_record_bytes());
        std::byte* end = out.data() + points_at;
        io::CloudSummary summary;
        format_->append({scan, 0, scan.returns.size()}, layout_, end, summary);
        out.resize(static_cast<std::size_t>(end - out.data()));
        // How many points there are is known now; the head is as long for any number.
        std::vector<std::byte> head;
        put_head(head, begin_ns, static_cast<std::uint32_t>(summary.points));
        std::copy(head.begin(), head.end(), out.begin() + static_cast<std::ptrdiff_t>(head_at));
        if (!fields_.empty())
            io::end_cloud(out);
        else if (summary.points > 0)
            out.pop_back();  // nothing follows that the last point would align
        chunk.end_message();
        return chunk;
    }
    void put_head(std::vector<std::byte>& out, std::int64_t stamp_ns, std::uint32_t points) const {
        if (fields_.empty())
            io::begin_livox(out, {stamp_ns, frame_}, points);
        else
            io::begin_cloud(out, {{stamp_ns, frame_}, fields_, points});
    }

    BagWriter& bag_;
    const io::BagChannel channel_;
    const std::size_t way_;
    const std::string frame_;
    const double sweep_s_;
    const std::string points_;
    const CloudLayout layout_;
    const std::unique_ptr<ScanFormat> format_;
    const std::vector<io::Field> fields_;
    std::mutex mutex_;
    std::map<std::uint64_t, McapChunk> ready_;  ///< by scan
};

BagWriter::BagWriter(const BagOptions& options, std::vector<BagSensor> sensors)
    : options_(options),
      compression_(compression_named(options.compression)),
      sensors_(checked(std::move(sensors))),
      clock_(BagClock::named(options.clock, first_begin_s(sensors_))),
      origin_m_(whole_metres_of(sensors_.at(0).trajectory)),
      tf_(add_channel("/tf", RosType::transforms)),
      tf_static_(add_channel("/tf_static", RosType::transforms, true)),
      run_(options.directory, {false, 0, {}, {kBagFile, std::string(kBagFile) + ".part", kMetadataFile}},
           options.overwrite),
      writer_(part(), facts()),
      queue_(writer_) {
    for (std::size_t i = 0; i < sensors_.size(); ++i) {
        const BagSensor& sensor = sensors_[i];
        const std::vector<double> times = scan_times(sensor.run, sensor.trajectory, sensor.schedule);
        const double end_s = times.back() + sweep_seconds(sensor.run.sensor);
        clock_.stamp_ns(times.front()), clock_.stamp_ns(end_s);  // both have a stamp, or it is said now
        const RosType type = sensor.output.points == "livox" ? RosType::livox : RosType::point_cloud;
        const std::size_t channel = add_channel("/" + ros_name(sensor.name) + "/points", type);
        const std::size_t way = way_of(sensor, end_s);
        ways_[way].begin_s = std::min(ways_[way].begin_s, times.front());
        sinks_.push_back(std::make_unique<Sink>(*this, i, channel, way));
    }
    for (Way& way : ways_) {
        const auto poses = way.trajectory->poses();
        while (way.next + 1 < poses.size() && poses[way.next + 1].time_s <= way.begin_s) ++way.next;
    }
    put_static_frames();
}

BagWriter::~BagWriter() = default;

std::filesystem::path BagWriter::part() const {
    return options_.directory / (std::string(kBagFile) + ".part");
}

ScanSink& BagWriter::sink(std::size_t sensor) const { return *sinks_.at(sensor); }

std::vector<std::string> BagWriter::notes() const {
    std::vector<std::string> notes;
    if (!clock_.note.empty()) notes.push_back(clock_.note);
    const bool jerky = std::any_of(ways_.begin(), ways_.end(), [](const Way& way) { return !way.spline; });
    if (jerky)
        notes.push_back(
            "the bag has no IMU: between poses the path is straight, and its accelerations are jumps; "
            "--smooth makes "
            "one path for scanner and IMU");
    return notes;
}

std::size_t BagWriter::add_channel(std::string topic, RosType type, bool latched) {
    channels_.push_back({static_cast<std::uint16_t>(channels_.size() + 1), std::move(topic), type, latched});
    numbers_.push_back(0);
    return channels_.size() - 1;
}

std::size_t BagWriter::way_of(const BagSensor& sensor, double end_s) {
    const std::string prefix = sensor.vehicle.empty() ? "" : ros_name(sensor.vehicle) + "/";
    const std::string base = prefix + "base_link";
    for (std::size_t i = 0; i < ways_.size(); ++i)
        if (ways_[i].base_frame == base) {
            ways_[i].end_s = std::max(ways_[i].end_s, end_s);
            return i;
        }
    Way way{base, &sensor.trajectory, sensor.spline, end_s, end_s, 0, 0};
    way.odometry = add_channel("/" + prefix + "odom", RosType::odometry);
    if (sensor.spline) way.imu = add_channel("/" + prefix + "imu/data", RosType::imu);
    ways_.push_back(std::move(way));
    return ways_.size() - 1;
}

void BagWriter::append(McapChunk chunk) {
    chunk.seal(compression_);
    queue_.put(std::move(chunk));
}

void BagWriter::put_static_frames() {
    double begin_s = std::numeric_limits<double>::infinity();
    for (const Way& way : ways_) begin_s = std::min(begin_s, way.begin_s);
    const std::int64_t stamp_ns = clock_.stamp_ns(begin_s);
    std::vector<std::string> names;
    for (const BagSensor& sensor : sensors_) names.push_back(ros_name(sensor.name));
    std::vector<io::NamedPose> frames{{{stamp_ns, "world"}, "map", {origin_m_, {}}}};
    for (std::size_t i = 0; i < sensors_.size(); ++i)
        frames.push_back({{stamp_ns, ways_[way_of(sensors_[i], 0)].base_frame},
                          names[i],
                          sensors_[i].run.body_from_sensor});
    McapChunk chunk;
    const io::BagChannel& channel = channels_[tf_static_];
    chunk.add_channel(channel);
    chunk.begin_message(channel, next_number(tf_static_), stamp_ns);
    io::put_transforms(chunk.content(), frames);
    chunk.end_message();
    append(std::move(chunk));
}

void BagWriter::put_pose(McapChunk& chunk, const Way& way, std::size_t pose) {
    const auto poses = way.trajectory->poses();
    const StampedPose& at = poses[pose];
    Pose map_from_base = at.world_from_body;
    map_from_base.translation = map_from_base.translation - origin_m_;
    const std::int64_t stamp_ns = clock_.stamp_ns(at.time_s);
    const io::NamedPose named{{stamp_ns, "map"}, way.base_frame, map_from_base};
    io::Motion motion{{0, 0, 0}, {0, 0, 0}};
    const Quaternion back = conjugate(at.world_from_body.rotation);
    if (way.spline) {
        const PoseSpline::State state = way.spline->at(at.time_s);
        motion = {rotate(back, state.velocity_m_s), state.turn_rad_s};
    } else if (poses.size() > 1) {
        // The motion until the next pose; the last one has that of the one before.
        const std::size_t from = std::min(pose, poses.size() - 2);
        const StampedPose &a = poses[from], &b = poses[from + 1];
        const double rate = 1 / (b.time_s - a.time_s);
        motion = {rotate(back, b.world_from_body.translation - a.world_from_body.translation) * rate,
                  quaternion_log(conjugate(a.world_from_body.rotation) * b.world_from_body.rotation) * rate};
    }
    chunk.begin_message(channels_[tf_], next_number(tf_), stamp_ns);
    io::put_transforms(chunk.content(), std::span(&named, 1));
    chunk.end_message();
    chunk.begin_message(channels_[way.odometry], next_number(way.odometry), stamp_ns);
    io::put_odometry(chunk.content(), named, motion);
    chunk.end_message();
}

void BagWriter::put_reading(McapChunk& chunk, const Way& way, double time_s) {
    const PoseSpline::State state = way.spline->at(time_s);
    const ImuSample sample = ideal_imu(state.pose.rotation, state.acceleration_m_s2, state.turn_rad_s);
    const std::int64_t stamp_ns = clock_.stamp_ns(time_s);
    chunk.begin_message(channels_[way.imu], next_number(way.imu), stamp_ns);
    io::put_imu(chunk.content(), {stamp_ns, way.base_frame},
                {state.pose.rotation, sample.turn_rad_s, sample.force_m_s2, 0, 0});
    chunk.end_message();
}

void BagWriter::put_poses(Way& way, double end_s) {
    const auto poses = way.trajectory->poses();
    // The first pose that is not before the end is the last one that matters.
    const auto is_due = [&](double until_s) {
        return way.next < poses.size() && (way.next == 0 || poses[way.next - 1].time_s < until_s);
    };
    if (!is_due(end_s)) return;
    const double until_s = std::min(end_s + kAhead_s, way.end_s);
    McapChunk chunk;
    chunk.add_channel(channels_[tf_]);
    chunk.add_channel(channels_[way.odometry]);
    if (way.spline) chunk.add_channel(channels_[way.imu]);
    const auto reading_s = [&way] { return way.begin_s + static_cast<double>(way.next_imu) / kImuRate_hz; };
    for (; is_due(until_s); ++way.next) {
        // Readings and poses in the order of their times.
        for (; way.spline && reading_s() < poses[way.next].time_s; ++way.next_imu)
            put_reading(chunk, way, reading_s());
        put_pose(chunk, way, way.next);
    }
    append(std::move(chunk));
}

std::vector<std::pair<std::string, std::string>> BagWriter::facts() const {
    const auto number = [](double v) { return std::to_string(static_cast<std::int64_t>(v)); };
    return {{"origin_m", number(origin_m_.x) + " " + number(origin_m_.y) + " " + number(origin_m_.z)},
            {"clock", options_.clock},
            {"clock_offset_s", std::to_string(clock_.offset_s)},
            {"crs", options_.crs}};
}

void BagWriter::finish() {
    queue_.finish();
    const io::McapSummary summary = writer_.finish(channels_);
    std::error_code ec;
    std::filesystem::rename(part(), options_.directory / kBagFile, ec);
    if (ec) throw IoError("cannot rename " + part().string() + ": " + ec.message());
    OutputFile metadata(options_.directory / kMetadataFile);
    metadata.writer().text(io::bag_metadata(kBagFile, channels_, summary, facts()));
    metadata.commit();
    run_.complete();
}

}  // namespace citysplat::sim
