#pragma once

#include "core/formats/las_records.hpp"

#include <memory>

namespace citysplat::formats {

/// Compressed LAS: one block per chunk. Throws UnavailableError when this build, or laz-perf, cannot decode
/// the file, saying which and what to do.
std::unique_ptr<PointFile> open_laz(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info,
                                    bool salvage);

}  // namespace citysplat::formats
