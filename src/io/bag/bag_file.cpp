#include "io/bag/bag_file.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "io/bag/cloud_times.hpp"
#include "io/bag/frame_tree.hpp"
#include "io/bag/mcap_reader.hpp"
#include "io/crs/crs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace citysplat::io {

namespace {

struct Stamped {
    std::int64_t stamp_ns;
    std::string frame;
};

Stamped read_header(CdrReader& cdr) {
    const auto seconds = cdr.number<std::int32_t>();
    const auto nanoseconds = cdr.number<std::uint32_t>();
    if (seconds < 0 || nanoseconds >= 1'000'000'000)
        cdr.fail("has the stamp " + std::to_string(seconds) + " s and " + std::to_string(nanoseconds) +
                 " ns, which is no time");
    return {std::int64_t{seconds} * 1'000'000'000 + nanoseconds, std::string(cdr.text())};
}

Vec3d read_vector(CdrReader& cdr) {
    const auto x = cdr.number<double>(), y = cdr.number<double>(), z = cdr.number<double>();
    return {x, y, z};
}
Quaternion read_rotation(CdrReader& cdr) {
    const auto x = cdr.number<double>(), y = cdr.number<double>(), z = cdr.number<double>(),
               w = cdr.number<double>();
    return {x, y, z, w};
}

/// A PointCloud2, looked at.
struct CloudView {
    Stamped head;
    std::uint64_t points = 0;
    std::vector<Column> columns;
    std::size_t step = 0;
    bool big_endian = false;
    std::span<const std::byte> data;

    StridedValues records() const {
        return {data.data(), step, static_cast<std::size_t>(points), big_endian};
    }
};

CloudView read_cloud(std::span<const std::byte> message, const std::string& where) {
    constexpr Scalar kTypes[]{Scalar::i8,  Scalar::u8,  Scalar::i16, Scalar::u16,
                              Scalar::i32, Scalar::u32, Scalar::f32, Scalar::f64};
    CdrReader cdr(message, where);
    CloudView cloud;
    cloud.head = read_header(cdr);
    const std::uint64_t height = cdr.number<std::uint32_t>(), width = cdr.number<std::uint32_t>();
    cloud.points = height * width;
    constexpr std::size_t kLeastFieldBytes = 13, kMostFields = 256;
    const std::uint32_t fields = cdr.count(kLeastFieldBytes);
    if (fields > kMostFields) cdr.fail("claims " + std::to_string(fields) + " fields");
    for (std::uint32_t i = 0; i < fields; ++i) {
        Column column;
        column.name = cdr.text();
        column.at = cdr.number<std::uint32_t>();
        const auto type = cdr.number<std::uint8_t>();
        const auto count = cdr.number<std::uint32_t>();
        if (type < 1 || type > 8)
            cdr.fail("has the field \"" + printable(column.name) + "\" of type " + std::to_string(type) +
                     ", which PointCloud2 does not have");
        column.type = kTypes[type - 1];
        if (count == 1) cloud.columns.push_back(std::move(column));
    }
    cloud.big_endian = cdr.number<std::uint8_t>() != 0;
    cloud.step = cdr.number<std::uint32_t>();
    const std::uint64_t row = cdr.number<std::uint32_t>();
    cloud.data = cdr.take(cdr.count(1));
    for (const Column& column : cloud.columns)
        if (!fits(column.at, bytes_of(column.type), cloud.step))
            cdr.fail("has the field \"" + printable(column.name) + "\" at byte " + std::to_string(column.at) +
                     " of points of " + std::to_string(cloud.step) + " bytes");
    if (cloud.points > 0 && (cloud.step == 0 || row != width * cloud.step))
        cdr.fail("has rows of " + std::to_string(row) + " bytes with " + std::to_string(width) +
                 " points of " + std::to_string(cloud.step) + " bytes");
    if (cloud.data.size() != height * row)
        cdr.fail("claims " + format_count(cloud.points) + " points of " + std::to_string(cloud.step) +
                 " bytes, and has " + std::to_string(cloud.data.size()) + " bytes of them");
    return cloud;
}

/// How the clouds of one topic with one set of fields are decoded.
struct CloudKind {
    std::string key;
    TableDecoder decoder;
    CloudTimes times;
    bool in_world;  ///< our own bags: coordinates of the world are among the fields
};

struct BagCloud {
    McapPlace place;
    std::uint64_t points;
    std::size_t kind;
    std::string frame;
    double begin_s, end_s;
};

bool has_column(const std::vector<Column>& columns, std::string_view name, Scalar type) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const Column& c) { return c.name == name && c.type == type; });
}

class BagFile final : public PointFile {
  public:
    BagFile(File file, const ReadOptions& options)
        : name_(file.path().string()),
          options_(options),
          reader_(std::move(file), options.salvage),
          tree_(name_) {
        set_clock();
        reader_.for_each_message([this](const McapMessage& m) { look_at(m); });
        place_clouds();
        describe();
    }

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return clouds_.size(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        const BagCloud& at = clouds_[index];
        const std::string where = reader_.name_of(at.place);
        const std::vector<std::byte> message = reader_.content(at.place);
        const CloudView cloud = read_cloud(message, where);
        const CloudKind& kind = kinds_[at.kind];
        if (cloud.points != at.points || key_of(cloud) != kind.key)
            throw InputError(where + ": the cloud has changed since the file was opened");
        kind.decoder.begin(out, cloud.records().count);
        kind.decoder.decode(cloud.data, std::max<std::size_t>(cloud.step, 1), cloud.big_endian, out, 0);
        out.gps_time = kind.times.of(cloud.records(), cloud.head.stamp_ns, clock_, where);
        place(paths_.at(at.frame), kind.in_world, out);
        fill_columns(out);
        kind.decoder.finish(0, out, where);  // the decoder was made for the first cloud of its kind
    }

  private:
    void look_at(const McapMessage& m) {
        const McapChannel& channel = reader_.channels().at(m.channel);
        if (channel.encoding != "cdr") return;
        const std::string where = reader_.name_of(m.place) + ", topic " + printable(channel.topic);
        if (channel.type == io::name_of(RosType::point_cloud)) add_cloud(m, where);
        if (channel.type == io::name_of(RosType::odometry)) add_odometry(m, where);
        if (channel.type == io::name_of(RosType::transforms)) add_transforms(m, where, channel.topic);
        if (channel.type == io::name_of(RosType::livox)) ++livox_;
    }

    void add_transforms(const McapMessage& m, const std::string& where, const std::string& topic) {
        constexpr std::size_t kLeastBytes = 8 + 5 + 5 + 56;
        CdrReader cdr(m.data, where);
        const bool fixed = topic.ends_with("tf_static");
        const std::uint32_t count = cdr.count(kLeastBytes);
        for (std::uint32_t i = 0; i < count; ++i) {
            const Stamped head = read_header(cdr);
            add_pose(cdr, head, fixed ? FrameTree::Source::fixed : FrameTree::Source::moving);
        }
    }
    void add_odometry(const McapMessage& m, const std::string& where) {
        CdrReader cdr(m.data, where);
        const Stamped head = read_header(cdr);
        add_pose(cdr, head, FrameTree::Source::odometry);
    }
    void add_pose(CdrReader& cdr, const Stamped& head, FrameTree::Source source) {
        const std::string child(cdr.text());
        Pose pose;
        pose.translation = read_vector(cdr);
        pose.rotation = read_rotation(cdr);
        tree_.add(head.frame, child, {clock_.seconds(head.stamp_ns), pose}, source);
    }

    static std::string key_of(const CloudView& cloud) {
        std::string key = std::to_string(cloud.step) + (cloud.big_endian ? "B" : "L");
        for (const Column& c : cloud.columns)
            key += "," + c.name + ":" + std::to_string(c.at) + ":" + std::to_string(static_cast<int>(c.type));
        return key;
    }

    void add_cloud(const McapMessage& m, const std::string& where) {
        const CloudView cloud = read_cloud(m.data, where);
        if (cloud.points == 0) return;
        const std::size_t kind = kind_of(cloud, where);
        const std::vector<double> times =
            kinds_[kind].times.of(cloud.records(), cloud.head.stamp_ns, clock_, where);
        const auto [first, last] = std::minmax_element(times.begin(), times.end());
        clouds_.push_back({m.place, cloud.points, kind, cloud.head.frame, *first, *last});
    }

    std::size_t kind_of(const CloudView& cloud, const std::string& where) {
        const std::string key = key_of(cloud);
        const auto known =
            std::find_if(kinds_.begin(), kinds_.end(), [&](const CloudKind& k) { return k.key == key; });
        if (known != kinds_.end()) return static_cast<std::size_t>(known - kinds_.begin());
        const bool world = has_column(cloud.columns, "world_x", Scalar::f64) &&
                           has_column(cloud.columns, "world_y", Scalar::f64) &&
                           has_column(cloud.columns, "world_z", Scalar::f64) &&
                           has_column(cloud.columns, "gps_time", Scalar::f64);
        CloudTimes times = CloudTimes::find(cloud.columns, world);
        const StridedValues records = cloud.records();
        if (times.kind != CloudTimes::Kind::none)
            times.decide(value_at(records.first + times.column.at, times.column.type, records.big_endian));
        std::vector<Column> columns;
        for (Column column : cloud.columns) {
            if (world && (column.name == "x" || column.name == "y" || column.name == "z")) continue;
            if (world && column.name.starts_with("world_")) column.name.erase(0, 6);
            if (column.name == "gps_time" || column.name == times.column.name) continue;
            columns.push_back(std::move(column));
        }
        ReadOptions options = options_;
        // What we write ourselves counts to 255.
        if (world && !options.intensity_range) options.intensity_range = {0, 255};
        TableDecoder decoder(std::move(columns), where, options, {.nan_is_no_return = true});
        if (decoder.wants_intensity_sample())
            decoder.choose_intensity_range(
                decoder.values_of(Role::intensity, cloud.data, cloud.step, cloud.big_endian));
        kinds_.push_back({key, std::move(decoder), times, world});
        return kinds_.size() - 1;
    }

    void set_clock() {
        const auto& facts = reader_.own_metadata();
        const auto found = facts.find("clock_offset_s");
        if (found == facts.end()) return;
        const auto offset = parse_whole<std::int64_t>(found->second);
        if (!offset || *offset > kMostOffset_s || *offset < -kMostOffset_s)
            throw InputError(name_ + ": the metadata say clock_offset_s = \"" + printable(found->second) +
                             "\", which is no number of seconds");
        clock_.offset_s = *offset;
    }

    /// When all messages were seen: where the frames of the clouds are, and which clouds have no pose.
    void place_clouds() {
        for (const BagCloud& cloud : clouds_) {
            if (paths_.contains(cloud.frame)) continue;
            auto path = tree_.path_to(cloud.frame);
            if (!path)
                throw InputError(name_ + ": no tf or odometry says where the frame \"" +
                                 printable(cloud.frame) +
                                 "\" of its clouds is over time; frames with poses: " +
                                 (tree_.listed().empty() ? "none" : tree_.listed()));
            paths_.emplace(cloud.frame, std::move(*path));
        }
        const std::size_t all = clouds_.size();
        const std::uint64_t points_of_all = points_of_clouds();
        std::erase_if(clouds_,
                      [this](const BagCloud& c) { return !paths_.at(c.frame).covers(c.begin_s, c.end_s); });
        const std::size_t lost = all - clouds_.size();
        if (all > 0 && lost == all)
            throw InputError(name_ + ": none of its " + format_count(all) +
                             " clouds lies within the times of tf and odometry");
        if (lost > 0)
            note_loss(format_count(lost) + " of " + format_count(all) +
                          " clouds lie before or after the poses of tf and odometry and are left out",
                      points_of_all - points_of_clouds());
    }

    std::uint64_t points_of_clouds() const {
        std::uint64_t points = 0;
        for (const BagCloud& cloud : clouds_) points += cloud.points;
        return points;
    }

    /// Counts points that are left out, too: of what cannot be read, at least one.
    void note_loss(const std::string& line, std::uint64_t points) {
        info_.notes.push_back(line);
        info_.points_lost += points;
    }

    static void place(const FramePath& path, bool in_world, PointBatch& out) {
        out.sensor.resize(out.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Pose pose = path.at(out.gps_time[i]);
            out.sensor[i] = pose.translation;
            const Vec3d p{out.x[i], out.y[i], out.z[i]};
            if (in_world) continue;
            // A point in the sensor itself is how drivers write a ray without a return.
            const bool nothing = p.x == 0 && p.y == 0 && p.z == 0;
            const Vec3d world = pose.apply(p);
            out.x[i] = nothing ? std::numeric_limits<double>::quiet_NaN() : world.x;
            out.y[i] = world.y, out.z[i] = world.z;
        }
    }
    /// Clouds of different topics may have different fields; a column is there for all or for none.
    void fill_columns(PointBatch& out) const {
        const std::size_t n = out.size();
        if (info_.has_intensity) out.intensity.resize(n);
        if (info_.has_label) out.label.resize(n);
        if (info_.has_instance) out.instance.resize(n);
        out.beam.resize(n, PointBatch::kNoBeam);
    }

    void describe() {
        if (clouds_.empty())
            throw InputError(
                name_ + ": no points of sensor_msgs/msg/PointCloud2 in this bag" +
                (livox_ > 0 ? "; CustomMsg of Livox is not read, set xfer_format to 0 in its driver" : ""));
        const auto& facts = reader_.own_metadata();
        const auto wkt = facts.find("crs");
        Crs crs = crs_from_wkt(wkt == facts.end() ? "" : wkt->second);
        crs.assign(options_, name_);
        const Vec3d scale = crs.scale_to_deliver(options_, name_);
        if (scale.x != 1 || scale.y != 1 || scale.z != 1)
            throw InputError(name_ + ": bags are in metres, and the system of coordinates is not");
        crs.describe(info_);
        info_.format = "MCAP, PointCloud2";
        std::set<std::size_t> used;
        for (const BagCloud& cloud : clouds_) info_.points += cloud.points, used.insert(cloud.kind);
        for (const std::size_t k : used) {
            PointFileInfo one;
            kinds_[k].decoder.describe(one);
            info_.has_intensity |= one.has_intensity;
            info_.has_label |= one.has_label;
            info_.has_instance |= one.has_instance;
            info_.notes.insert(info_.notes.end(), one.notes.begin(), one.notes.end());
            for (const std::string& column : one.columns)
                if (std::find(info_.columns.begin(), info_.columns.end(), column) == info_.columns.end())
                    info_.columns.push_back(column);
            if (kinds_[k].times.kind == CloudTimes::Kind::none)
                info_.notes.push_back(
                    "points of some clouds have no time; all are taken at the stamp of their cloud");
        }
        info_.has_gps_time = info_.has_sensor = true;
        if (livox_ > 0)
            note_loss(format_count(livox_) + " messages of Livox (CustomMsg) are not read", livox_);
        if (reader_.damaged_chunks() > 0)
            note_loss(format_count(reader_.damaged_chunks()) + " damaged chunks are left out",
                      reader_.damaged_chunks());
        if (reader_.missing_messages() > 0)
            note_loss(
                format_count(reader_.missing_messages()) + " messages that the file counts are not there",
                reader_.missing_messages());
        if (!reader_.complete()) note_loss("the file ends before its data do; what is whole is read", 1);
    }

    static constexpr std::int64_t kMostOffset_s = 100'000'000'000;

    std::string name_;
    ReadOptions options_;
    McapReader reader_;
    FrameTree tree_;
    StampClock clock_;
    std::vector<CloudKind> kinds_;
    std::map<std::string, FramePath> paths_;  ///< by frame
    std::vector<BagCloud> clouds_;
    std::uint64_t livox_ = 0;
    PointFileInfo info_;
};

}  // namespace

std::unique_ptr<PointFile> open_bag(File file, const ReadOptions& options) {
    if (!options.labels.empty())
        throw UsageError(file.path().string() +
                         ": a bag has its labels among its fields; files of labels are for clouds");
    return std::make_unique<BagFile>(std::move(file), options);
}

}  // namespace citysplat::io
