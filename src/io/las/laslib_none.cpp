#include "core/error.hpp"
#include "io/las/laslib.hpp"

/// A build without LASlib: says so.
namespace citysplat::io {

bool laslib_available() { return false; }

std::string laslib_advice() {
    return "this build has no LASlib; install LAStools' LASlib, configure with -DLASlib_DIR=… and build "
           "again";
}

std::unique_ptr<PointFile> open_laslib(File file, LasHeader, LasRecordDecoder, PointFileInfo, bool) {
    throw UnavailableError(file.path().string() + ": --reader laslib: " + laslib_advice());
}

void require_laz_writing() { throw UnavailableError("LAZ is written by LASlib; " + laslib_advice()); }

void compress_las(const std::filesystem::path&, const std::filesystem::path&, const CancelToken&) {
    require_laz_writing();
}

std::filesystem::path replace_by_laz(const std::filesystem::path& las) {
    require_laz_writing();
    return las;
}

}  // namespace citysplat::io
