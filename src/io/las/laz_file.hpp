#pragma once

#include "io/las/las_records.hpp"

#include <memory>

namespace citysplat::io {

/// Compressed LAS, decoded by laz-perf: one block per chunk. Requires laz_available() and a file that is not
/// laz_unsupported().
std::unique_ptr<PointFile> open_laz(File file, LasHeader header, LasRecordDecoder decoder, PointFileInfo info,
                                    bool salvage);

}  // namespace citysplat::io
