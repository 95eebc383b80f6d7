#include "io/las/las_file.hpp"

#include "core/error.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/las/chunk_table.hpp"
#include "io/las/las_crs.hpp"
#include "io/las/las_header.hpp"
#include "io/las/las_records.hpp"
#include "io/las/laslib.hpp"
#include "io/las/laz_file.hpp"

#include <algorithm>

namespace citysplat::io {

namespace {

constexpr std::uint64_t kBlockPoints = 1 << 16;
constexpr std::size_t kReadBytes = std::size_t{256} << 10;  ///< of a block at a time: stays in the L2 cache

PointFileInfo info_of(const LasHeader& h, const LasRecordDecoder& decoder, const Crs& crs) {
    PointFileInfo info;
    info.format = std::string(h.compressed ? "LAZ" : "LAS") + " 1." + std::to_string(h.version_minor) +
                  ", point format " + std::to_string(h.point_format);
    info.points = h.readable_points();
    info.points_lost = h.points_lost;
    info.bounds = h.bounds;
    info.bounds_known = h.points > 0;
    crs.describe(info);
    info.has_gps_time = decoder.has_gps_time();
    info.has_intensity = info.has_label = true;
    if (info.has_gps_time)
        info.time_kind = h.global_encoding & 1 ? PointFileInfo::TimeKind::adjusted_standard
                                               : PointFileInfo::TimeKind::week_seconds;
    info.made_by = h.system_id + (h.system_id.empty() || h.software.empty() ? "" : ", ") + h.software;
    info.has_sensor = decoder.has_sensor();
    info.has_instance = decoder.has_instance();
    for (const auto& field : h.extra) info.columns.push_back(field.name);
    info.notes = h.notes;
    return info;
}

/// Plain LAS: blocks of 65536 records, each read in pieces that stay in the cache.
class LasFile : public PointFile {
  public:
    LasFile(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info)
        : file_(std::move(file)),
          header_(std::move(header)),
          decoder_(std::move(decoder)),
          info_(std::move(info)) {}

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override {
        return static_cast<std::size_t>((info_.points + kBlockPoints - 1) / kBlockPoints);
    }

    void read_block(std::size_t index, PointBatch& out) const override {
        const std::uint64_t first = index * kBlockPoints;
        const auto count = static_cast<std::size_t>(std::min(kBlockPoints, info_.points - first));
        const std::size_t stride = header_.record_bytes,
                          piece = std::max<std::size_t>(1, kReadBytes / stride);
        const auto buffer = std::make_unique_for_overwrite<std::byte[]>(piece * stride);
        decoder_.begin(out, count);
        for (std::size_t done = 0; done < count;) {
            const std::size_t now = std::min(piece, count - done);
            const std::span bytes(buffer.get(), now * stride);
            file_.read_at(header_.points_offset + (first + done) * stride, bytes);
            decoder_.decode(bytes, out, done);
            done += now;
        }
        decoder_.finish(first, out);
    }

  private:
    File file_;
    LasHeader header_;
    LasRecordDecoder decoder_;
    PointFileInfo info_;
};

enum class Decoding { own, laz_perf, laslib };

/// Who decodes the points. Throws UnavailableError naming what this build lacks.
Decoding choose(const File& file, const LasHeader& header, ReadOptions::Reader wanted) {
    using Reader = ReadOptions::Reader;
    if (wanted == Reader::laslib) return Decoding::laslib;
    if (!header.compressed) return Decoding::own;
    const std::string why = laz_unsupported(file, header);
    if (why.empty() && laz_available()) return Decoding::laz_perf;
    if (wanted == Reader::automatic && laslib_available()) return Decoding::laslib;
    const std::string name = file.path().string();
    if (why.empty()) throw UnavailableError(name + ": " + laz_advice());
    throw UnavailableError(
        name + ": " + why + " is beyond the built-in reader; recompress the file, or read it " +
        (laslib_available() ? "by LASlib with --reader laslib or auto" : "with LASlib: " + laslib_advice()));
}

}  // namespace

std::unique_ptr<PointFile> open_las(File file, const ReadOptions& options) {
    LasHeader header = read_las_header(file, options.salvage);
    const std::string name = file.path().string();
    Crs crs = las_crs(header, name);
    crs.assign(options, name);
    const Vec3d metres = crs.scale_to_deliver(options, name);
    LasRecordDecoder decoder(header, name, options, metres);
    PointFileInfo info = info_of(header, decoder, crs);
    for (Vec3d* corner : {&info.bounds.min, &info.bounds.max})
        *corner = {corner->x * metres.x, corner->y * metres.y, corner->z * metres.z};
    const Decoding by = choose(file, header, options.reader);
    if (by == Decoding::laslib)
        return open_laslib(std::move(file), std::move(header), std::move(decoder), std::move(info),
                           options.salvage);
    if (by == Decoding::laz_perf)
        return open_laz(std::move(file), std::move(header), std::move(decoder), std::move(info),
                        options.salvage);
    std::vector<std::byte> first(
        static_cast<std::size_t>(std::min(info.points, LasRecordDecoder::kLookPoints)) * header.record_bytes);
    file.read_at(header.points_offset, first);
    decoder.look_at(first, info);
    return std::make_unique<LasFile>(std::move(file), std::move(header), std::move(decoder), std::move(info));
}

}  // namespace citysplat::io
