#pragma once

#include "io/las/chunk_table.hpp"
#include "io/las/las_records.hpp"

#include <functional>
#include <vector>

namespace citysplat::io {

/// A LAS file read block by block, whoever decodes the blocks: what is common to laz-perf and LASlib. Under
/// salvage an unreadable chunk table loses all points, and a damaged compressed block all of its own: one
/// impossible point means that those around it cannot be trusted, because they depend on each other.
class ChunkedFile : public PointFile {
  public:
    const PointFileInfo& info() const override { return info_; }
    std::size_t block_count() const override { return blocks_.size(); }
    void read_block(std::size_t index, PointBatch& out) const override;

  protected:
    using Take = std::function<void(std::span<const std::byte>)>;

    ChunkedFile(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info, bool salvage)
        : file_(std::move(file)),
          header_(std::move(header)),
          decoder_(std::move(decoder)),
          info_(std::move(info)),
          salvage_(salvage) {}

    /// Finds the blocks and looks at the first points. To be called once, before anything else.
    void find_and_look();

    /// Throws InputError when the chunk table is damaged.
    virtual std::vector<LazChunk> find_blocks() const { return read_laz_chunks(file_, header_); }
    /// Records that are stored as they are, so that no damage in front of them reaches them: the first of
    /// every chunk.
    virtual std::vector<std::byte> plain_records() const;
    /// Hands on the points of a block in pieces of whole records. Throws InputError when it is damaged.
    virtual void decode(std::size_t index, const Take& take) const = 0;

    File file_;
    LasHeader header_;
    LasRecordDecoder decoder_;
    PointFileInfo info_;
    bool salvage_;
    std::vector<LazChunk> blocks_;
};

}  // namespace citysplat::io
