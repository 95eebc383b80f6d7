#pragma once

#include "core/error.hpp"
#include "core/file.hpp"
#include "io/point_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace citysplat::fuzz {

/// The bytes as a file in memory.
class MemoryFile {
  public:
    MemoryFile(const std::uint8_t* data, std::size_t size)
        : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
    }
    ~MemoryFile() { ::close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
    File open() const { return File(path(), File::Mode::read); }

  private:
    int descriptor_;
};

/// Opens and reads all points, strictly and with salvage. Errors of ours are fine; what is delivered must
/// hold the promises of PointBatch, and salvage must account for every point.
inline void read_points(const std::function<std::unique_ptr<PointFile>(const ReadOptions&)>& open) {
    for (const bool salvage : {false, true}) {
        ReadOptions options;
        options.salvage = salvage;
        options.units = salvage ? ReadOptions::Units::as_is : ReadOptions::Units::refuse;
        try {
            const auto file = open(options);
            PointBatch batch;
            std::uint64_t seen = 0;
            for (std::size_t i = 0; i < file->block_count(); ++i) {
                file->read_block(i, batch);
                batch.check();
                seen += batch.size() + batch.damaged + batch.no_return;
                for (const std::uint64_t masked : batch.masked) seen += masked;
            }
            if (seen != file->info().points) std::abort();
        } catch (const Error&) {
        }
    }
}

}  // namespace citysplat::fuzz
