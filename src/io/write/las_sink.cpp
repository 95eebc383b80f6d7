#include "core/error.hpp"
#include "core/file.hpp"
#include "io/bytes_le.hpp"
#include "io/las/las_crs.hpp"
#include "io/write/point_sink.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace citysplat {

namespace {

using io::store_le;

constexpr std::size_t kHeaderBytes = 375, kVlrBytes = 54, kFieldBytes = 192, kRecordBytes = 30;
constexpr std::uint16_t kWktFlag = 1 << 4;

void store_text(std::byte* at, std::string_view text, std::size_t width) {
    std::memcpy(at, text.data(), std::min(text.size(), width));
}

/// Where the columns beyond format 6 sit in a record; 0: not written.
struct Layout {
    std::size_t label = 0, instance = 0, sensor = 0, bytes = kRecordBytes;
    std::uint16_t fields = 0;
};

/// The header is written last: until finish() the file starts with zeros, which no reader takes for LAS.
class LasSink : public PointSink {
  public:
    LasSink(const std::filesystem::path& path, const SinkOptions& options)
        : name_(path.string()), options_(options), out_(path) {
        if (!std::isfinite(options.scale_m) || options.scale_m <= 0)
            throw UsageError("the resolution of a LAS file must be positive, not " +
                             std::to_string(options.scale_m));
        if (!options.crs.empty()) crs_ = io::las_crs_record(options.crs);
        low_.fill(std::numeric_limits<std::int32_t>::max());
        high_.fill(std::numeric_limits<std::int32_t>::min());
    }

    void write(const PointBatch& batch) override {
        batch.check();
        if (batch.size() == 0) return;
        if (count_ == 0) begin(batch);
        if (has(batch.label) != has_label_ || has(batch.instance) != (layout_.instance != 0) ||
            has(batch.sensor) != (layout_.sensor != 0))
            throw std::logic_error(name_ + ": batches with different columns");
        records_.assign(batch.size() * layout_.bytes, std::byte{0});
        for (std::size_t i = 0; i < batch.size(); ++i) encode(batch, i, records_.data() + i * layout_.bytes);
        out_.write(records_);
        count_ += batch.size();
    }

    void finish() override {
        if (!begun_) begin({});
        const std::vector<std::byte> head = header();
        out_.patch(0, head);
        out_.finish();
    }

    std::uint64_t points() const override { return count_; }

  private:
    template <class T>
    static bool has(const std::vector<T>& column) {
        return !column.empty();
    }

    void begin(const PointBatch& first) {
        begun_ = true;
        if (!options_.offset_m && first.size() > 0) {
            const auto kilometre = [](double v) { return std::floor(v / 1000 + 0.5) * 1000; };
            options_.offset_m = Vec3d{kilometre(first.x[0]), kilometre(first.y[0]), 0};
        }
        offset_ = options_.offset_m.value_or(Vec3d{0, 0, 0});
        has_label_ = has(first.label);
        const auto place = [this](std::size_t& at, std::size_t bytes, std::uint16_t fields) {
            at = layout_.bytes;
            layout_.bytes += bytes;
            layout_.fields = static_cast<std::uint16_t>(layout_.fields + fields);
        };
        if (has_label_ && options_.wide_labels) place(layout_.label, 2, 1);
        if (has(first.instance)) place(layout_.instance, 2, 1);
        if (has(first.sensor)) place(layout_.sensor, 12, 3);
        const std::vector<std::byte> room(header_bytes());
        out_.write(room);
    }

    std::int32_t quantise(double value_m, double offset_m, const char* what, std::size_t i) const {
        const double steps = std::floor((value_m - offset_m) / options_.scale_m + 0.5);
        if (!(std::fabs(steps) <= 2147483647.0))
            throw InputError(name_ + ": point " + std::to_string(count_ + i) + ": " + what + " = " +
                             std::to_string(value_m) + " does not fit 32 bits at a resolution of " +
                             std::to_string(options_.scale_m) + " m from offset " + std::to_string(offset_m));
        return static_cast<std::int32_t>(steps);
    }

    void encode(const PointBatch& batch, std::size_t i, std::byte* to) {
        const Vec3d& o = offset_;
        const std::int32_t position[3]{quantise(batch.x[i], o.x, "x", i), quantise(batch.y[i], o.y, "y", i),
                                       quantise(batch.z[i], o.z, "z", i)};
        for (std::size_t a = 0; a < 3; ++a) {
            store_le(to + 4 * a, position[a]);
            low_[a] = std::min(low_[a], position[a]);
            high_[a] = std::max(high_[a], position[a]);
        }
        if (has(batch.intensity)) store_le(to + 12, batch.intensity[i]);
        to[14] = std::byte{0x11};  // return 1 of 1
        if (has(batch.withheld) && batch.withheld[i]) to[15] = std::byte{4};
        if (has_label_) encode_label(batch.label[i], i, to);
        if (has(batch.scan_angle_deg)) {
            const double steps = static_cast<double>(batch.scan_angle_deg[i]) / 0.006;
            store_le(to + 18,
                     static_cast<std::int16_t>(std::clamp(std::floor(steps + 0.5), -30000.0, 30000.0)));
        }
        if (has(batch.gps_time)) store_le(to + 22, batch.gps_time[i]);
        if (layout_.instance) store_le(to + layout_.instance, batch.instance[i]);
        if (layout_.sensor) {
            const Vec3d& s = batch.sensor[i];
            store_le(to + layout_.sensor, quantise(s.x, o.x, "sensor x", i));
            store_le(to + layout_.sensor + 4, quantise(s.y, o.y, "sensor y", i));
            store_le(to + layout_.sensor + 8, quantise(s.z, o.z, "sensor z", i));
        }
    }

    void encode_label(std::uint16_t label, std::size_t i, std::byte* to) const {
        if (layout_.label) store_le(to + layout_.label, label);
        if (label > 255 && !layout_.label)
            throw InputError(name_ + ": point " + std::to_string(count_ + i) + ": label " +
                             std::to_string(label) + " does not fit the 8 bits of a LAS classification");
        to[16] = label > 255 ? std::byte{0} : static_cast<std::byte>(label);
    }

    std::size_t header_bytes() const {
        return kHeaderBytes + (crs_ ? kVlrBytes + crs_->payload.size() : 0) +
               (layout_.fields ? kVlrBytes + layout_.fields * kFieldBytes : 0);
    }

    std::vector<std::byte> header() const {
        if (crs_ && crs_->payload.size() > 65535)
            throw UsageError(name_ + ": the coordinate system is longer than a LAS record can hold");
        std::vector<std::byte> head(header_bytes());
        std::byte* h = head.data();
        store_text(h, "LASF", 4);
        store_le(h + 6, static_cast<std::uint16_t>(!crs_ || crs_->is_wkt ? kWktFlag : 0));
        h[24] = std::byte{1};
        h[25] = std::byte{4};
        store_text(h + 26, "citysplat", 32);
        store_text(h + 58, options_.software, 31);
        store_le(h + 94, static_cast<std::uint16_t>(kHeaderBytes));
        store_le(h + 96, static_cast<std::uint32_t>(head.size()));
        store_le(h + 100, static_cast<std::uint32_t>((crs_ ? 1 : 0) + (layout_.fields ? 1 : 0)));
        h[104] = std::byte{6};
        store_le(h + 105, static_cast<std::uint16_t>(layout_.bytes));
        const double offsets[3]{offset_.x, offset_.y, offset_.z};
        for (std::size_t a = 0; a < 3; ++a) {
            store_le(h + 131 + 8 * a, options_.scale_m);
            store_le(h + 155 + 8 * a, offsets[a]);
            if (count_ == 0) continue;
            store_le(h + 179 + 16 * a, high_[a] * options_.scale_m + offsets[a]);
            store_le(h + 187 + 16 * a, low_[a] * options_.scale_m + offsets[a]);
        }
        store_le(h + 247, count_);
        store_le(h + 255, count_);
        store_vlrs(h + kHeaderBytes);
        return head;
    }

    static std::byte* store_vlr(std::byte* at, std::string_view user, std::uint16_t id, std::size_t bytes,
                                std::string_view description) {
        store_text(at + 2, user, 16);
        store_le(at + 18, id);
        store_le(at + 20, static_cast<std::uint16_t>(bytes));
        store_text(at + 22, description, 31);
        return at + kVlrBytes;
    }

    void store_vlrs(std::byte* at) const {
        if (crs_) {
            at = store_vlr(at, "LASF_Projection", crs_->id, crs_->payload.size(), "coordinate system");
            store_text(at, crs_->payload, crs_->payload.size());
            at += crs_->payload.size();
        }
        if (!layout_.fields) return;
        at = store_vlr(at, "LASF_Spec", 4, layout_.fields * kFieldBytes, "extra bytes");
        const auto field = [&at](std::string_view name, int type) {
            at[2] = static_cast<std::byte>(type);
            store_text(at + 4, name, 32);
            at += kFieldBytes;
            return at - kFieldBytes;
        };
        if (layout_.label) field("label", 3);
        if (layout_.instance) field("instance", 3);
        if (!layout_.sensor) return;
        const double offsets[3]{offset_.x, offset_.y, offset_.z};
        for (std::size_t a = 0; a < 3; ++a) {
            std::byte* f = field(std::string("sensor_") + static_cast<char>('x' + a), 6);
            f[3] = std::byte{8 | 16};  // scale and offset are set
            store_le(f + 112, options_.scale_m);
            store_le(f + 136, offsets[a]);
        }
    }

    std::string name_;
    SinkOptions options_;
    std::optional<io::LasCrsRecord> crs_;
    Vec3d offset_{0, 0, 0};
    FileWriter out_;
    Layout layout_;
    bool begun_ = false, has_label_ = false;
    std::uint64_t count_ = 0;
    std::array<std::int32_t, 3> low_, high_;
    std::vector<std::byte> records_;
};

}  // namespace

std::unique_ptr<PointSink> create_las(const std::filesystem::path& path, const SinkOptions& options) {
    return std::make_unique<LasSink>(path, options);
}

}  // namespace citysplat
