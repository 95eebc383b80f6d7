#include "sim/output/run_directory.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/output_file.hpp"
#include "core/toml_text.hpp"
#include "sim/scan/scan_sink.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

namespace citysplat::sim {

namespace fs = std::filesystem;

namespace {

constexpr const char *kManifest = "run.toml", *kKind = "citysplat run";

/// All that a run may write. A manifest that names anything else is not ours.
constexpr std::array<std::string_view, 9> kParts{"velodyne/*.bin", "labels/*.label", "scans/*.las",
                                                 "scans/*.laz",    "scans/*.ply",    "scans/*.pcd",
                                                 "scans/*.xyz",    "boxes/*.csv",    "label_02/*.txt"};
constexpr std::array<std::string_view, 13> kFiles{
    "calib.txt",  "poses.txt",       "times.txt",    "cloud.las",   "cloud.laz",
    "cloud.ply",  "cloud.pcd",       "cloud.xyz",    "objects.csv", "label_calib.txt",
    "bag_0.mcap", "bag_0.mcap.part", "metadata.yaml"};

/// "velodyne/*.bin" as "velodyne" and ".bin".
std::pair<std::string_view, std::string_view> split(std::string_view part) {
    const std::size_t star = part.find('*');
    return {part.substr(0, star - 1), part.substr(star + 1)};
}

fs::path scan_file(std::string_view part, std::uint64_t scan) {
    const auto [folder, extension] = split(part);
    return fs::path(folder) / (scan_name(scan) + std::string(extension));
}

std::string quoted(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
    return "[" + out + "]";
}

void write(const fs::path& directory, const RunManifest& m) {
    const std::string text =
        "# What citysplat simulate wrote here; its --overwrite removes exactly this.\n"
        "kind = \"" +
        std::string(kKind) + "\"\nversion = 1\ncomplete = " + (m.complete ? "true" : "false") +
        "\nscans = " + std::to_string(m.scans) + "\nparts = " + quoted(m.parts) +
        "\nfiles = " + quoted(m.files) + "\n";
    OutputFile out(directory / kManifest);
    out.writer().text(text);
    out.commit(true);
}

/// The texts of an array that are all among `known`; nothing when it is anything else.
template <std::size_t N>
std::optional<std::vector<std::string>> names_in(const toml::node* node,
                                                 const std::array<std::string_view, N>& known) {
    const auto* array = node ? node->as_array() : nullptr;
    if (!array) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& item : *array) {
        const std::string name = item.value_or(std::string());
        if (std::find(known.begin(), known.end(), name) == known.end()) return std::nullopt;
        names.push_back(name);
    }
    return names;
}

/// Nothing when there is none. Throws UsageError when it is not of our making.
std::optional<RunManifest> read(const fs::path& directory) {
    const fs::path path = directory / kManifest;
    if (!fs::exists(path)) return std::nullopt;
    const auto foreign = [&path] {
        return UsageError(path.string() +
                          " was not written by citysplat simulate; give another directory with --out");
    };
    toml::table table;
    try {
        table = parse_toml(read_text_file(path), path.string());
    } catch (const ConfigError&) {
        throw foreign();
    }
    const auto scans = whole_number<std::uint64_t>(table.get("scans"));
    const auto parts = names_in(table.get("parts"), kParts);
    const auto files = names_in(table.get("files"), kFiles);
    if (table["kind"].value_or(std::string()) != kKind || !scans || *scans > kMostScans || !parts || !files)
        throw foreign();
    return RunManifest{table["complete"].value_or(false), *scans, *parts, *files};
}

bool names(const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

/// A file that a run would write, or read as its own, and that the manifest does not name.
std::optional<fs::path> find_foreign(const fs::path& directory, const RunManifest& manifest) {
    for (const std::string_view file : kFiles)
        if (!names(manifest.files, file) && fs::exists(fs::symlink_status(directory / file)))
            return directory / file;
    for (const std::string_view part : kParts) {
        const auto [folder, extension] = split(part);
        if (!fs::is_directory(directory / folder)) continue;
        for (const auto& entry : fs::directory_iterator(directory / folder)) {
            const auto number = parse_whole<std::uint64_t>(entry.path().stem().string());
            if (!number || entry.path().extension() != extension) continue;
            const bool ours = names(manifest.parts, part) && *number < manifest.scans &&
                              entry.path().stem() == scan_name(*number);
            if (!ours) return entry.path();
        }
    }
    return std::nullopt;
}

/// The manifest of what may be removed; empty when there is nothing.
RunManifest removable(const fs::path& directory, bool overwrite) {
    const std::optional<RunManifest> earlier = read(directory);
    if (earlier && earlier->complete && !overwrite)
        throw UsageError(directory.string() +
                         " holds the scans of another run; --overwrite replaces them, or give another "
                         "directory");
    const RunManifest manifest = earlier.value_or(RunManifest{});
    if (const auto foreign = find_foreign(directory, manifest))
        throw UsageError(foreign->string() + " is not of a run of citysplat (no " + kManifest +
                         " names it); give another directory with --out");
    return manifest;
}

void remove_files(const fs::path& directory, const RunManifest& manifest) {
    const auto remove = [&directory](const fs::path& name) {
        fs::remove(directory / name);
        fs::remove(OutputFile::partial_of(directory / name));
    };
    for (const std::string& part : manifest.parts)
        for (std::uint64_t scan = 0; scan < manifest.scans; ++scan) remove(scan_file(part, scan));
    for (const std::string& file : manifest.files) remove(file);
}

}  // namespace

std::string scan_name(std::uint64_t index) {
    char name[32];
    std::snprintf(name, sizeof name, "%06llu", static_cast<unsigned long long>(index));
    return name;
}

void RunDirectory::check(const fs::path& directory, bool overwrite) {
    if (fs::is_directory(directory)) removable(directory, overwrite);
}

RunDirectory::RunDirectory(fs::path directory, RunManifest manifest, bool overwrite)
    : directory_(std::move(directory)), manifest_(std::move(manifest)) {
    std::error_code ec;
    fs::create_directories(directory_, ec);
    if (ec) throw IoError("cannot create directory " + directory_.string() + ": " + ec.message());
    lock_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0) throw_errno("cannot open directory", directory_);
    try {
        // Where directories cannot be locked (some network file systems), two runs are not noticed.
        if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            throw BusyError(directory_.string() + ": another simulation writes its scans there");
        RunManifest earlier = removable(directory_, overwrite);
        // Incomplete before it is: a cut in the middle leaves what the next run may remove.
        if (earlier.complete) {
            earlier.complete = false;
            write(directory_, earlier);
        }
        remove_files(directory_, earlier);
        manifest_.complete = false;
        write(directory_, manifest_);
    } catch (...) {
        ::close(lock_);
        throw;
    }
}

RunDirectory::~RunDirectory() { ::close(lock_); }

void RunDirectory::complete() {
    manifest_.complete = true;
    write(directory_, manifest_);
}

}  // namespace citysplat::sim
