#include "io/las/chunked_file.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <utility>

namespace citysplat::io {

void ChunkedFile::find_and_look() {
    try {
        blocks_ = find_blocks();
    } catch (const InputError& e) {
        if (!salvage_) throw;
        info_.notes.push_back(e.what());
        info_.points_lost = std::exchange(info_.points, 0);
        return;
    }
    decoder_.look_at(plain_records(), info_);
}

std::vector<std::byte> ChunkedFile::plain_records() const {
    const std::size_t bytes = header_.record_bytes,
                      looked = std::min<std::size_t>(blocks_.size(), LasRecordDecoder::kLookPoints);
    std::vector<std::byte> first(looked * bytes);
    for (std::size_t i = 0; i < looked; ++i)
        file_.read_at(blocks_[i].offset, std::span(first).subspan(i * bytes, bytes));
    return first;
}

void ChunkedFile::read_block(std::size_t index, PointBatch& out) const {
    const LazChunk& block = blocks_[index];
    const auto lose = [&] {
        out.clear();
        out.damaged = block.points;
    };
    decoder_.begin(out, 0);
    std::size_t done = 0;
    try {
        // Columns grow as points come out: what a damaged chunk claims to hold is not believed.
        decode(index, [&](std::span<const std::byte> records) {
            const std::size_t n = records.size() / header_.record_bytes;
            decoder_.grow(out, done + n);
            decoder_.decode(records, out, done);
            done += n;
        });
    } catch (const InputError&) {
        if (!salvage_) throw;
        return lose();
    }
    decoder_.finish(block.first_point, out);
    if (out.damaged && header_.compressed) lose();
}

}  // namespace citysplat::io
