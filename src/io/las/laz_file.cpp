#include "io/las/laz_file.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/las/chunked_file.hpp"

#include <algorithm>
#include <cstring>

namespace citysplat::io {

namespace {

constexpr std::size_t kWavePacketBytes = 29;

/// The parts of a chunk of point formats 6–10: the first point as it is, the number of points, the sizes of
/// the layers, the layers: 9 of coordinates and attributes, 1 or 2 of colour, 1 of waveform packets, and 1
/// per extra byte.
class LayeredChunk {
  public:
    LayeredChunk(std::span<const std::byte> packed, const LasHeader& h, std::uint64_t points,
                 const std::string& where)
        : record_bytes_(h.record_bytes) {
        const std::size_t extra = h.record_bytes - kLasRecordBytes[static_cast<std::size_t>(h.point_format)];
        const std::size_t layers = plain_layers(h.point_format) + (h.point_format >= 9 ? 1 : 0) + extra;
        std::uint64_t sum = record_bytes_ + 4 + 4 * layers;
        if (sum > packed.size()) throw InputError(where + ": no room for the sizes of its layers");
        const std::uint32_t claimed = load_le<std::uint32_t>(packed.data() + record_bytes_);
        if (claimed != points)
            throw InputError(where + ": claims " + std::to_string(claimed) +
                             " points; the chunk table says " + std::to_string(points));
        for (std::size_t i = 0; i < layers; ++i) {
            sizes_.push_back(load_le<std::uint32_t>(packed.data() + record_bytes_ + 4 + 4 * i));
            sum += sizes_.back();
        }
        if (sum > packed.size())
            throw InputError(where + ": its layers need " + std::to_string(sum) + " bytes, it has " +
                             std::to_string(packed.size()));
    }

    /// The same points as a chunk of format 6 or 8: the packet of the first point, the size of the waveform
    /// layer and the layer itself are cut out.
    std::vector<std::byte> without_waveform(std::span<const std::byte> packed, int plain_format) const {
        const std::size_t wave = plain_layers(plain_format),
                          standard = kLasRecordBytes[static_cast<std::size_t>(plain_format)];
        std::size_t wave_at = record_bytes_ + 4 + 4 * sizes_.size();
        for (std::size_t i = 0; i < wave; ++i) wave_at += sizes_[i];
        std::vector<std::byte> out;
        const auto append = [&](std::size_t from, std::size_t to) {
            out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(from),
                       packed.begin() + static_cast<std::ptrdiff_t>(to));
        };
        append(0, standard);
        append(standard + kWavePacketBytes, record_bytes_ + 4 + 4 * wave);
        append(record_bytes_ + 4 + 4 * (wave + 1), wave_at);
        append(wave_at + sizes_[wave], packed.size());
        return out;
    }

  private:
    static std::size_t plain_layers(int format) {
        return format == 7 ? 10 : format == 8 || format == 10 ? 11 : 9;
    }

    std::size_t record_bytes_;
    std::vector<std::uint32_t> sizes_;
};

class LazFile : public ChunkedFile {
  public:
    LazFile(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info, bool salvage)
        : ChunkedFile(std::move(file), std::move(header), std::move(decoder), std::move(info), salvage) {
        find_and_look();
    }

  private:
    void decode(std::size_t index, const Take& take) const override {
        const LazChunk& chunk = blocks_[index];
        const auto points = static_cast<std::size_t>(chunk.points);
        std::vector<std::byte> packed(static_cast<std::size_t>(chunk.bytes));
        file_.read_at(chunk.offset, packed);
        const std::string where = file_.path().string() + ": chunk " + std::to_string(index) + " at byte " +
                                  std::to_string(chunk.offset) + " (points from " +
                                  std::to_string(chunk.first_point) + ")";
        if (header_.point_format < 6) {
            decode_laz_chunk(packed, {header_.point_format, header_.record_bytes, points}, where, take);
            return;
        }
        const LayeredChunk layers(packed, header_, chunk.points, where);
        if (header_.point_format <= 8) {
            decode_laz_chunk(packed, {header_.point_format, header_.record_bytes, points}, where, take);
            return;
        }
        // Waveform formats are others with a layer more, which we do not need: 9 is 6, 10 is 8 with packets.
        const int plain_format = header_.point_format == 9 ? 6 : 8;
        const std::size_t whole = header_.record_bytes, plain = whole - kWavePacketBytes,
                          standard = kLasRecordBytes[static_cast<std::size_t>(plain_format)];
        std::vector<std::byte> wide;
        decode_laz_chunk(layers.without_waveform(packed, plain_format), {plain_format, plain, points}, where,
                         [&](std::span<const std::byte> records) {
                             const std::size_t n = records.size() / plain;
                             wide.assign(n * whole, std::byte{0});
                             for (std::size_t i = 0; i < n; ++i) {
                                 const std::byte* from = records.data() + i * plain;
                                 std::byte* to = wide.data() + i * whole;
                                 std::memcpy(to, from, standard);
                                 std::memcpy(to + standard + kWavePacketBytes, from + standard,
                                             plain - standard);
                             }
                             take(wide);
                         });
    }
};

}  // namespace

std::unique_ptr<PointFile> open_laz(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info,
                                    bool salvage) {
    return std::make_unique<LazFile>(std::move(file), std::move(header), std::move(decoder), std::move(info),
                                     salvage);
}

}  // namespace citysplat::io
