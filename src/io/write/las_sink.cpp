#include "core/error.hpp"
#include "core/file.hpp"
#include "io/write/cloud_header.hpp"
#include "io/write/point_sink.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace citysplat {

namespace {

using namespace io;

/// Columns beyond format 6; they follow the point in this order.
struct Extras {
    bool label = false, instance = false, sensor = false;
};

std::vector<Field> fields_of(const Extras& extras, const LasGrid& grid) {
    std::vector<Field> fields;
    if (extras.label) fields.push_back({"label", FieldType::u16, "", ""});
    if (extras.instance) fields.push_back({"instance", FieldType::u16, "", ""});
    if (extras.sensor) {
        fields.push_back({"sensor_x", FieldType::i32, "m", "", grid.scale_m, grid.offset_m.x});
        fields.push_back({"sensor_y", FieldType::i32, "m", "", grid.scale_m, grid.offset_m.y});
        fields.push_back({"sensor_z", FieldType::i32, "m", "", grid.scale_m, grid.offset_m.z});
    }
    return fields;
}

/// The header is written last: until finish() the file starts with zeros, which no reader takes for LAS.
class LasSink : public PointSink {
  public:
    LasSink(const std::filesystem::path& path, const SinkOptions& options)
        : name_(path.string()), options_(options), out_(path) {
        if (!std::isfinite(options.scale_m) || options.scale_m <= 0)
            throw UsageError("the resolution of a LAS file must be positive, not " +
                             std::to_string(options.scale_m));
        grid_.scale_m = options.scale_m;
    }

    void write(const PointBatch& batch) override {
        batch.check();
        if (batch.size() == 0) return;
        if (summary_.points == 0) begin(batch);
        if (batch.label.empty() == has_label_ || batch.instance.empty() == extras_.instance ||
            batch.sensor.empty() == extras_.sensor)
            throw std::logic_error(name_ + ": batches with different columns");
        records_.resize(batch.size() * record_bytes_);
        std::byte* at = records_.data();
        for (std::size_t i = 0; i < batch.size(); ++i) try {
                encode(batch, i, at);
            } catch (const InputError& e) {
                throw InputError(name_ + ": point " + std::to_string(summary_.points) + ": " + e.what());
            }
        out_.write(records_);
    }

    void finish() override {
        if (!begun_) begin({});
        const std::string head = header();
        out_.patch(0, std::as_bytes(std::span(head)));
        out_.finish();
    }

    std::uint64_t points() const override { return summary_.points; }

  private:
    void begin(const PointBatch& first) {
        begun_ = true;
        const auto kilometre = [](double v) { return std::floor(v / 1000 + 0.5) * 1000; };
        if (options_.offset_m)
            grid_.offset_m = *options_.offset_m;
        else if (first.size() > 0)
            grid_.offset_m = {kilometre(first.x[0]), kilometre(first.y[0]), 0};
        has_label_ = !first.label.empty();
        extras_ = {has_label_ && options_.wide_labels, !first.instance.empty(), !first.sensor.empty()};
        fields_ = fields_of(extras_, grid_);
        for (const Field& f : fields_) record_bytes_ += facts_of(f.type).bytes;
        const std::vector<std::byte> room(header().size());
        out_.write(room);
    }

    std::string header() const {
        return las_header({fields_, grid_, options_.crs, "citysplat", options_.software}, summary_);
    }

    void encode(const PointBatch& batch, std::size_t i, std::byte*& at) {
        LasPoint point;
        point.place = grid_.steps({batch.x[i], batch.y[i], batch.z[i]});
        if (!batch.intensity.empty()) point.intensity = batch.intensity[i];
        if (!batch.withheld.empty()) point.withheld = batch.withheld[i] != 0;
        if (has_label_) point.label = batch.label[i];
        if (point.label > 255 && !extras_.label)
            throw InputError("label " + std::to_string(point.label) +
                             " does not fit the 8 bits of a LAS classification");
        if (!batch.scan_angle_deg.empty()) {
            const double steps = static_cast<double>(batch.scan_angle_deg[i]) / 0.006;
            point.scan_angle =
                static_cast<std::int16_t>(std::clamp(std::floor(steps + 0.5), -30000.0, 30000.0));
        }
        if (!batch.gps_time.empty()) point.gps_time = batch.gps_time[i];
        put_las_point(at, point);
        if (extras_.label) put(at, point.label);
        if (extras_.instance) put(at, batch.instance[i]);
        if (extras_.sensor) put(at, grid_.steps(batch.sensor[i], "sensor "));
        summary_.add(grid_.metres(point.place));
    }

    std::string name_;
    SinkOptions options_;
    FileWriter out_;
    LasGrid grid_;
    Extras extras_;
    std::vector<Field> fields_;
    std::size_t record_bytes_ = kLasPointBytes;
    bool begun_ = false, has_label_ = false;
    CloudSummary summary_;
    std::vector<std::byte> records_;
};

}  // namespace

std::unique_ptr<PointSink> create_las(const std::filesystem::path& path, const SinkOptions& options) {
    return std::make_unique<LasSink>(path, options);
}

}  // namespace citysplat
