#include "core/error.hpp"
#include "core/file.hpp"
#include "io/bytes_le.hpp"
#include "io/write/point_sink.hpp"

#include <cmath>
#include <vector>

namespace citysplat {

namespace {

/// The header has a fixed length, filled up by a comment, because the number of points is known only at the
/// end; until finish() the file starts with zeros, which no reader takes for PLY.
class PlySink : public PointSink {
  public:
    PlySink(const std::filesystem::path& path, const SinkOptions& options)
        : name_(path.string()), options_(options), out_(path) {
        for (char& c : options_.crs)
            if (c == '\n' || c == '\r') c = ' ';
    }

    void write(const PointBatch& batch) override {
        batch.check();
        if (batch.size() == 0) return;
        if (!begun_) begin(batch);
        if (properties_of(batch) != properties_)
            throw std::logic_error(name_ + ": batches with different columns");
        records_.clear();
        for (std::size_t i = 0; i < batch.size(); ++i) encode(batch, i);
        out_.write(records_);
        count_ += batch.size();
    }

    void finish() override {
        if (!begun_) begin({});
        std::string head = header_text(count_, 0);
        head = header_text(count_, header_bytes_ - head.size());
        out_.patch(0, std::as_bytes(std::span(head.data(), head.size())));
        out_.finish();
    }

    std::uint64_t points() const override { return count_; }

  private:
    static std::string properties_of(const PointBatch& b) {
        std::string p = "property double x\nproperty double y\nproperty double z\n";
        if (!b.gps_time.empty()) p += "property double gps_time\n";
        if (!b.intensity.empty()) p += "property ushort intensity\n";
        if (!b.label.empty()) p += "property ushort label\n";
        if (!b.instance.empty()) p += "property ushort instance\n";
        if (!b.scan_angle_deg.empty()) p += "property float scan_angle_deg\n";
        if (!b.sensor.empty())
            p += "property double sensor_x\nproperty double sensor_y\nproperty double sensor_z\n";
        if (!b.withheld.empty()) p += "property uchar withheld\n";
        return p;
    }

    std::string header_text(std::uint64_t count, std::size_t padding) const {
        return "ply\nformat binary_little_endian 1.0\ncomment " + options_.software +
               std::string(padding, ' ') + "\n" +
               (options_.crs.empty() ? "" : "comment crs " + options_.crs + "\n") + "element vertex " +
               std::to_string(count) + "\n" + properties_ + "end_header\n";
    }

    void begin(const PointBatch& first) {
        begun_ = true;
        properties_ = properties_of(first);
        header_bytes_ = header_text(UINT64_MAX, 0).size();
        const std::vector<std::byte> room(header_bytes_);
        out_.write(room);
    }

    template <class T>
    void append(const T& value) {
        const std::size_t at = records_.size();
        records_.resize(at + sizeof value);
        io::store_le(records_.data() + at, value);
    }

    void encode(const PointBatch& b, std::size_t i) {
        for (const double v : {b.x[i], b.y[i], b.z[i]}) {
            if (!std::isfinite(v))
                throw InputError(name_ + ": point " + std::to_string(count_ + i) +
                                 ": a coordinate is not finite");
            append(v);
        }
        if (!b.gps_time.empty()) append(b.gps_time[i]);
        if (!b.intensity.empty()) append(b.intensity[i]);
        if (!b.label.empty()) append(b.label[i]);
        if (!b.instance.empty()) append(b.instance[i]);
        if (!b.scan_angle_deg.empty()) append(b.scan_angle_deg[i]);
        if (!b.sensor.empty()) append(b.sensor[i]);
        if (!b.withheld.empty()) append(b.withheld[i]);
    }

    std::string name_;
    SinkOptions options_;
    FileWriter out_;
    std::string properties_;
    std::size_t header_bytes_ = 0;
    bool begun_ = false;
    std::uint64_t count_ = 0;
    std::vector<std::byte> records_;
};

}  // namespace

std::unique_ptr<PointSink> create_ply(const std::filesystem::path& path, const SinkOptions& options) {
    return std::make_unique<PlySink>(path, options);
}

}  // namespace citysplat
