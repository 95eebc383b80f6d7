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

/// A vector of a batch as properties.
struct Column {
    std::vector<Field> fields;
    bool (*present)(const PointBatch&);
    void (*put)(std::byte*& at, const PointBatch&, std::size_t i);
};

template <auto kMember>
Column column(std::vector<Field> fields) {
    return {std::move(fields), [](const PointBatch& b) { return !(b.*kMember).empty(); },
            [](std::byte*& at, const PointBatch& b, std::size_t i) { put(at, (b.*kMember)[i]); }};
}

const std::vector<Column>& columns() {
    static const std::vector<Column> all{
        column<&PointBatch::x>({{"x", FieldType::f64, "m", ""}}),
        column<&PointBatch::y>({{"y", FieldType::f64, "m", ""}}),
        column<&PointBatch::z>({{"z", FieldType::f64, "m", ""}}),
        column<&PointBatch::gps_time>({{"gps_time", FieldType::f64, "s", ""}}),
        column<&PointBatch::intensity>({{"intensity", FieldType::u16, "", ""}}),
        column<&PointBatch::label>({{"label", FieldType::u16, "", ""}}),
        column<&PointBatch::instance>({{"instance", FieldType::u16, "", ""}}),
        column<&PointBatch::scan_angle_deg>({{"scan_angle_deg", FieldType::f32, "°", ""}}),
        column<&PointBatch::sensor>({{"sensor_x", FieldType::f64, "m", ""},
                                     {"sensor_y", FieldType::f64, "m", ""},
                                     {"sensor_z", FieldType::f64, "m", ""}}),
        column<&PointBatch::withheld>({{"withheld", FieldType::u8, "", ""}}),
    };
    return all;
}

/// Columns of the batch, the position first, which every cloud has.
std::vector<const Column*> columns_of(const PointBatch& batch) {
    std::vector<const Column*> found;
    for (const Column& c : columns())
        if (found.size() < 3 || c.present(batch)) found.push_back(&c);
    return found;
}

/// Until finish() the file starts with zeros, which no reader takes for PLY.
class PlySink : public PointSink {
  public:
    PlySink(const std::filesystem::path& path, const SinkOptions& options)
        : name_(path.string()), comments_{options.software}, out_(path) {
        if (!options.crs.empty()) comments_.push_back("crs " + options.crs);
        for (char& c : comments_.back())
            if (c == '\n' || c == '\r') c = ' ';
    }

    void write(const PointBatch& batch) override {
        batch.check();
        if (batch.size() == 0) return;
        if (columns_.empty()) begin(batch);
        if (columns_of(batch) != columns_) throw std::logic_error(name_ + ": batches with different columns");
        records_.resize(batch.size() * record_bytes_);
        std::byte* at = records_.data();
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (!std::isfinite(batch.x[i]) || !std::isfinite(batch.y[i]) || !std::isfinite(batch.z[i]))
                throw InputError(name_ + ": point " + std::to_string(count_ + i) +
                                 ": a coordinate is not finite");
            for (const Column* c : columns_) c->put(at, batch, i);
        }
        out_.write(records_);
        count_ += batch.size();
    }

    void finish() override {
        if (columns_.empty()) begin({});
        const std::string head = ply_header(fields_, count_, comments_);
        out_.patch(0, std::as_bytes(std::span(head)));
        out_.finish();
    }

    std::uint64_t points() const override { return count_; }

  private:
    void begin(const PointBatch& first) {
        columns_ = columns_of(first);
        for (const Column* c : columns_) fields_.insert(fields_.end(), c->fields.begin(), c->fields.end());
        for (const Field& f : fields_) record_bytes_ += facts_of(f.type).bytes;
        const std::vector<std::byte> room(ply_header(fields_, 0, comments_).size());
        out_.write(room);
    }

    std::string name_;
    std::vector<std::string> comments_;
    FileWriter out_;
    std::vector<const Column*> columns_;
    std::vector<Field> fields_;
    std::size_t record_bytes_ = 0;
    std::uint64_t count_ = 0;
    std::vector<std::byte> records_;
};

}  // namespace

std::unique_ptr<PointSink> create_ply(const std::filesystem::path& path, const SinkOptions& options) {
    return std::make_unique<PlySink>(path, options);
}

}  // namespace citysplat
