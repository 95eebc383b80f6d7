#include "io/points/binary_table.hpp"

#include "core/error.hpp"
#include "core/math/lattice.hpp"
#include "io/bytes_le.hpp"

#include <algorithm>
#include <cmath>

namespace citysplat::io {

namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

class BinaryTableFile : public PointFile {
  public:
    BinaryTableFile(File file, const BinaryTable& table, TableDecoder decoder, PointFileInfo info)
        : file_(std::move(file)), table_(table), decoder_(std::move(decoder)), info_(std::move(info)) {}

    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override {
        return static_cast<std::size_t>((table_.records + kBlockRecords - 1) / kBlockRecords);
    }

    void read_block(std::size_t index, PointBatch& out) const override {
        const std::uint64_t first = index * kBlockRecords;
        const auto count = static_cast<std::size_t>(std::min(kBlockRecords, table_.records - first));
        const std::size_t stride = table_.stride, piece = std::max<std::size_t>(1, kReadBytes / stride);
        const auto buffer = std::make_unique_for_overwrite<std::byte[]>(std::min(piece, count) * stride);
        decoder_.begin(out, count);
        for (std::size_t done = 0; done < count;) {
            const std::size_t now = std::min(piece, count - done);
            const std::span bytes(buffer.get(), now * stride);
            file_.read_at(table_.offset + (first + done) * stride, bytes);
            decoder_.decode(bytes, stride, table_.big_endian, out, done);
            done += now;
        }
        decoder_.finish(first, out);
    }

  private:
    File file_;
    BinaryTable table_;
    TableDecoder decoder_;
    PointFileInfo info_;
};

/// Share of coordinates that could be metres: finite, on Earth, and not the dust that swapped bytes give.
double plausible_share(const TableDecoder& decoder, std::span<const std::byte> records, std::size_t stride,
                       bool big_endian) {
    std::size_t good = 0, all = 0;
    for (const Role role : {Role::x, Role::y, Role::z})
        for (const double v : decoder.values_of(role, records, stride, big_endian)) {
            const double a = std::fabs(v);
            good += v == 0 || (a > 1e-30 && a <= kMaxWorld_m);
            ++all;
        }
    return all ? static_cast<double>(good) / static_cast<double>(all) : 1.0;
}

}  // namespace

std::uint64_t records_inside(const File& file, const BinaryTable& table, bool salvage) {
    const std::uint64_t size = file.size();
    const std::uint64_t present = table.offset <= size ? (size - table.offset) / table.stride : 0;
    if (table.records <= present) return table.records;
    if (!salvage)
        throw InputError(file.path().string() + ": claims " + std::to_string(table.records) + " points of " +
                         std::to_string(table.stride) + " bytes at byte " + std::to_string(table.offset) +
                         ", but ends after " + std::to_string(present) + " of them (" + std::to_string(size) +
                         " bytes); --salvage reads what is there");
    return present;
}

void refuse_more_records(const File& file, const BinaryTable& table, bool salvage) {
    const std::uint64_t end = table.offset + table.records * table.stride;
    const std::uint64_t more = (file.size() - end) / table.stride;
    if (salvage || more == 0) return;
    throw InputError(file.path().string() + ": claims " + std::to_string(table.records) + " points of " +
                     std::to_string(table.stride) + " bytes, but " + std::to_string(more) +
                     " more fit behind them at byte " + std::to_string(end) + "; --salvage leaves them out");
}

void inspect_first_records(const File& file, const BinaryTable& table, TableDecoder& decoder) {
    const std::uint64_t count = std::min(table.records, kBlockRecords);
    if (count == 0) return;
    std::vector<std::byte> records(static_cast<std::size_t>(count) * table.stride);
    file.read_at(table.offset, records);
    const std::span some(records.data(),
                         static_cast<std::size_t>(std::min<std::uint64_t>(count, 1000)) * table.stride);
    if (plausible_share(decoder, some, table.stride, table.big_endian) < 0.5 &&
        plausible_share(decoder, some, table.stride, !table.big_endian) > 0.9)
        throw InputError(file.path().string() + ": the coordinates make sense only as " +
                         (table.big_endian ? "little" : "big") + "-endian numbers, but the header says " +
                         (table.big_endian ? "big" : "little") + "-endian; correct the header");
    if (decoder.wants_intensity_sample())
        decoder.choose_intensity_range(
            decoder.values_of(Role::intensity, records, table.stride, table.big_endian));
}

std::unique_ptr<PointFile> make_binary_table_file(File file, const BinaryTable& table, TableDecoder decoder,
                                                  PointFileInfo info) {
    return std::make_unique<BinaryTableFile>(std::move(file), table, std::move(decoder), std::move(info));
}

}  // namespace citysplat::io
