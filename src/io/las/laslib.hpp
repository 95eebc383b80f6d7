#pragma once

#include "core/cancel.hpp"
#include "io/las/las_records.hpp"

#include <filesystem>
#include <memory>

/// LASlib, where the user has it: reads what the built-in reader does not (LASzip 1, compressed point formats
/// 4 and 5), and writes LAZ.
namespace citysplat::io {

/// Was this build made with LASlib?
bool laslib_available();
/// How to get a build that was.
std::string laslib_advice();

/// LAS or LAZ decoded by LASlib. Header and chunk table are checked by our own code before. Throws InputError
/// when they are damaged, UnavailableError when LASlib is not there or does not know the compression.
std::unique_ptr<PointFile> open_laslib(File file, LasHeader header, LasRecordDecoder decoder,
                                       PointFileInfo info, bool salvage);

/// Writes the points, the header and the variable length records of a LAS file as LAZ into another one.
/// Throws UnavailableError without LASlib, Interrupted.
void compress_las(const std::filesystem::path& las, const std::filesystem::path& laz,
                  const CancelToken& cancel = CancelToken());
/// The same beside the LAS file, which is removed. Returns the path of the LAZ file. Throws UnavailableError
/// without LASlib.
std::filesystem::path replace_by_laz(const std::filesystem::path& las);
/// Throws UnavailableError when this build cannot write LAZ, before anything is made in vain.
void require_laz_writing();

}  // namespace citysplat::io
