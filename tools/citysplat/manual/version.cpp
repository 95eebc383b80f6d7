#include "citysplat/manual/version.hpp"

#include "citysplat/manual/build_facts.hpp"
#include "io/las/chunk_decoder.hpp"
#include "io/las/laslib.hpp"
#include "tiling/store/catalog_schema.hpp"
#include "tiling/store/generation_record.hpp"
#include "trace/tracer.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace citysplat::cli {

namespace {

using Fact = std::pair<const char*, const char*>;

/// Of the packages it was compiled with, as CMake found them.
constexpr std::array kLibraries{
    Fact{"oneTBB", CITYSPLAT_TBB_VERSION},    Fact{"Embree", CITYSPLAT_EMBREE_VERSION},
    Fact{"Highway", CITYSPLAT_HWY_VERSION},   Fact{"Eigen", CITYSPLAT_EIGEN_VERSION},
    Fact{"SQLite", CITYSPLAT_SQLITE_VERSION}, Fact{"PROJ", CITYSPLAT_PROJ_VERSION}};

const char* laz_support() {
    return io::laslib_available() ? "LASlib" : io::laz_available() ? "reading only" : "none";
}

}  // namespace

std::string version_text(bool json) {
    const std::string name = std::string("citysplat ") + CITYSPLAT_VERSION;
    const std::string instruction_set = trace::group_instruction_sets().front();
    if (json) {
        nlohmann::json libraries;
        for (const auto& [library, version] : kLibraries) libraries[library] = version;
        return nlohmann::json{
            {"version", CITYSPLAT_VERSION},
            {"revision", CITYSPLAT_REVISION},
            {"compiler", CITYSPLAT_COMPILER},
            {"gpu", CITYSPLAT_WITH_GPU},
            {"laz", laz_support()},
            {"instruction_set", instruction_set},
            {"libraries", libraries},
            {"formats",
             {{"catalog", tiling::kCatalogVersion}, {"generation_record", tiling::kRecordVersion}}}}
            .dump(2);
    }
    std::string text = name + " (" + CITYSPLAT_REVISION + ")\ncompiled by " + CITYSPLAT_COMPILER +
                       ", GPU backend: " + CITYSPLAT_WITH_GPU + ", LAZ: " + laz_support() + "; rays by " +
                       instruction_set + " here\nlibraries: ";
    for (std::size_t i = 0; i < kLibraries.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::string(kLibraries[i].first) + " " + kLibraries[i].second;
    return text + "\nformats: catalog " + std::to_string(tiling::kCatalogVersion) + ", generation record " +
           std::to_string(tiling::kRecordVersion);
}

}  // namespace citysplat::cli
