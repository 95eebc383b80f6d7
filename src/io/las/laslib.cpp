#include "io/las/laslib.hpp"

#include "core/error.hpp"
#include "io/bytes_le.hpp"
#include "io/las/chunked_file.hpp"

#include <algorithm>
#include <bytestreamin_file.hpp>
#include <bytestreamout_file.hpp>
#include <cstdio>
#include <lasdefinitions.hpp>
#include <lasmessage.hpp>
#include <lasreadpoint.hpp>
#include <laswritepoint.hpp>
#include <mutex>
#include <utility>

/// The only file that sees LASlib. Of it only the coder is used: headers, records and chunk tables are parsed
/// and checked by our own code before it sees a byte, because LASlib believes them. Its messages go through
/// global objects that are not safe with threads and end the process by default; both are switched off once,
/// before the first use. Errors are taken from the coder itself.
namespace citysplat::io {

namespace {

constexpr std::uint64_t kBlockPoints = 1 << 16;
constexpr std::size_t kPiecePoints = 4096;
constexpr std::size_t kVlrBytes = 54;

void silence() {
    static std::once_flag once;
    std::call_once(once, [] {
        halt_on_error(false);
        set_las_message_handler([](LAS_MESSAGE_TYPE, const char*, void*) {});
        set_message_log_level(LAS_QUIET);
    });
}

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using StdFile = std::unique_ptr<std::FILE, CloseFile>;

StdFile open_std(const std::filesystem::path& path, const char* mode) {
    StdFile file(std::fopen(path.c_str(), mode));
    if (!file) throw_errno("cannot open", path);
    return file;
}

/// One pass through a file. For one thread at a time.
class Reading {
  public:
    Reading(const std::filesystem::path& path, const LasHeader& h)
        : file_(open_std(path, "rb")), stream_(file_.get()), name_(path.string()), aligned_(h.record_bytes) {
        const LasVlr* record = h.compressed ? h.find("laszip encoded", 22204) : nullptr;
        const bool known =
            record ? zip_.unpack(reinterpret_cast<const U8*>(record->payload.data()),
                                 static_cast<int>(record->payload.size()))
                   : zip_.setup(static_cast<U8>(h.point_format), h.record_bytes, LASZIP_COMPRESSOR_NONE);
        if (!known || !point_.init(nullptr, zip_.num_items, zip_.items) ||
            !coder_.setup(zip_.num_items, zip_.items, &zip_))
            throw UnavailableError(name_ + ": LASlib does not know this compression" +
                                   (zip_.get_error() ? std::string(": ") + zip_.get_error() : ""));
        if (!stream_.seek(h.points_offset) || !coder_.init(&stream_)) fail(0);
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    std::uint64_t at() const { return at_; }

    void seek(std::uint64_t point) {
        if (point != at_ && !coder_.seek(at_, point)) fail(point);
        at_ = point;
    }
    void next(std::byte* record) {
        if (!coder_.read(point_.point)) fail(at_);
        point_.copy_to(reinterpret_cast<U8*>(aligned_.data()));  // writes 16-bit numbers at once
        std::memcpy(record, aligned_.data(), aligned_.size());
        ++at_;
    }

  private:
    [[noreturn]] void fail(std::uint64_t point) const {
        throw InputError(name_ + ": point " + std::to_string(point) + ": LASlib cannot decode it" +
                         (coder_.error() ? std::string(": ") + coder_.error() : ""));
    }

    StdFile file_;
    ByteStreamInFileLE stream_;
    std::string name_;
    std::vector<std::byte> aligned_;  ///< one record
    LASzip zip_;
    LASpoint point_;
    LASreadPoint coder_;
    std::uint64_t at_ = 0;
};

/// Blocks are the chunks, or runs of 65 536 points where there are none. Files of LASzip 1 can only be read
/// from the front: a reading that stopped before a block is continued.
class LaslibFile : public ChunkedFile {
  public:
    LaslibFile(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info, bool salvage)
        : ChunkedFile(std::move(file), std::move(header), std::move(decoder), std::move(info), salvage) {
        info_.format += ", by LASlib";
        find_and_look();
        if (!blocks_.empty()) idle_.push_back(std::make_unique<Reading>(file_.path(), header_));
    }

  private:
    void decode(std::size_t index, const Take& take) const override {
        const LazChunk& block = blocks_[index];
        auto reading = take_reading(block.first_point);
        reading->seek(block.first_point);
        std::vector<std::byte> records(kPiecePoints * header_.record_bytes);
        for (std::uint64_t left = block.points; left > 0;) {
            const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(kPiecePoints, left));
            for (std::size_t i = 0; i < now; ++i) reading->next(records.data() + i * header_.record_bytes);
            take(std::span(records).first(now * header_.record_bytes));
            left -= now;
        }
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(reading));
    }

    std::vector<LazChunk> find_blocks() const override {
        if (header_.compressed && laz_is_chunked(file_, header_)) return read_laz_chunks(file_, header_);
        std::vector<LazChunk> blocks;
        for (std::uint64_t first = 0; first < info_.points; first += kBlockPoints)
            blocks.push_back({0, 0, first, std::min(kBlockPoints, info_.points - first)});
        return blocks;
    }

    /// Without chunks: all of plain LAS, the first of LASzip 1.
    std::vector<std::byte> plain_records() const override {
        if (!blocks_.empty() && blocks_[0].offset != 0) return ChunkedFile::plain_records();
        const std::uint64_t there =
            header_.compressed ? std::min<std::uint64_t>(1, info_.points) : info_.points;
        const auto looked =
            static_cast<std::size_t>(std::min<std::uint64_t>(there, LasRecordDecoder::kLookPoints));
        std::vector<std::byte> first(looked * header_.record_bytes);
        file_.read_at(header_.points_offset, first);
        return first;
    }

    /// A reading that is as far as possible without being beyond `point`; a new one when there is none.
    std::unique_ptr<Reading> take_reading(std::uint64_t point) const {
        {
            const std::lock_guard lock(mutex_);
            auto best = idle_.end();
            for (auto i = idle_.begin(); i != idle_.end(); ++i)
                if ((*i)->at() <= point && (best == idle_.end() || (*i)->at() > (*best)->at())) best = i;
            if (best != idle_.end()) {
                auto reading = std::move(*best);
                idle_.erase(best);
                return reading;
            }
        }
        return std::make_unique<Reading>(file_.path(), header_);
    }

    mutable std::mutex mutex_;  ///< guards idle_
    mutable std::vector<std::unique_ptr<Reading>> idle_;
};

/// Header and records of `las` with the LASzip record behind them.
std::vector<std::byte> compressed_head(const File& las, const LasHeader& h, LASzip& zip) {
    U8* record = nullptr;
    int record_bytes = 0;
    if (!zip.setup(static_cast<U8>(h.point_format), h.record_bytes,
                   h.point_format >= 6 ? LASZIP_COMPRESSOR_LAYERED_CHUNKED : LASZIP_COMPRESSOR_CHUNKED) ||
        !zip.pack(record, record_bytes))
        throw UnavailableError(las.path().string() + ": LASlib cannot compress point format " +
                               std::to_string(h.point_format));
    const auto bytes = static_cast<std::size_t>(record_bytes);
    std::vector<std::byte> head(h.points_offset + kVlrBytes + bytes);
    las.read_at(0, std::span(head).first(h.points_offset));
    std::byte* vlr = head.data() + h.points_offset;
    const std::string_view user = "laszip encoded", description = "LASzip";
    std::memcpy(vlr + 2, user.data(), user.size());
    store_le(vlr + 18, std::uint16_t{22204});
    store_le(vlr + 20, static_cast<std::uint16_t>(bytes));
    std::memcpy(vlr + 22, description.data(), description.size());
    std::memcpy(vlr + kVlrBytes, record, bytes);
    store_le(head.data() + 96, static_cast<std::uint32_t>(head.size()));
    store_le(head.data() + 100, load_le<std::uint32_t>(head.data() + 100) + 1);
    head[104] |= std::byte{0x80};
    return head;
}

}  // namespace

bool laslib_available() { return true; }
std::string laslib_advice() { return {}; }

std::unique_ptr<PointFile> open_laslib(File file, LasHeader header, LasRecordDecoder decoder,
                                       PointFileInfo info, bool salvage) {
    silence();
    return std::make_unique<LaslibFile>(std::move(file), std::move(header), std::move(decoder),
                                        std::move(info), salvage);
}

void require_laz_writing() {}

void compress_las(const std::filesystem::path& las, const std::filesystem::path& laz,
                  const CancelToken& cancel) {
    silence();
    const File in(las, File::Mode::read);
    const LasHeader h = read_las_header(in, false);
    if (h.compressed) throw InputError(las.string() + ": is compressed already");
    if (std::any_of(h.vlrs.begin(), h.vlrs.end(), [](const LasVlr& v) { return v.extended; }))
        throw InputError(las.string() + ": has extended records, which are not compressed here");
    LASzip zip;
    const std::vector<std::byte> head = compressed_head(in, h, zip);
    const StdFile out = open_std(laz, "wb");
    ByteStreamOutFileLE stream(out.get());
    LASpoint point;
    LASwritePoint coder;
    const auto check = [&laz](bool good) {
        if (!good) throw_errno("cannot write", laz);
    };
    check(std::fwrite(head.data(), 1, head.size(), out.get()) == head.size());
    check(point.init(nullptr, zip.num_items, zip.items) && coder.setup(zip.num_items, zip.items, &zip) &&
          coder.init(&stream));
    std::vector<std::byte> records(kPiecePoints * h.record_bytes), aligned(h.record_bytes);
    for (std::uint64_t done = 0; done < h.points;) {
        cancel.check();
        const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(kPiecePoints, h.points - done));
        in.read_at(h.points_offset + done * h.record_bytes, std::span(records).first(now * h.record_bytes));
        for (std::size_t i = 0; i < now; ++i) {
            std::memcpy(aligned.data(), records.data() + i * h.record_bytes, aligned.size());
            point.copy_from(reinterpret_cast<const U8*>(aligned.data()));
            check(coder.write(point.point));
        }
        done += now;
    }
    check(coder.done());
    check(std::fflush(out.get()) == 0);
}

std::filesystem::path replace_by_laz(const std::filesystem::path& las) {
    const std::filesystem::path laz = std::filesystem::path(las).replace_extension(".laz");
    compress_las(las, laz);
    std::filesystem::remove(las);
    return laz;
}

}  // namespace citysplat::io
