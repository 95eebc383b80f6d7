#include "io/input/input_list.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/input/open_point_file.hpp"
#include "io/input/pattern.hpp"
#include "io/input/virtual_cloud.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

namespace citysplat {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxListDepth = 4;

/// What a folder is searched for. Text files are left out unless their name says points: a .txt or .csv in a
/// folder is as likely a trajectory or a readme.
bool is_point_file(const fs::path& path) {
    constexpr std::array<std::string_view, 8> kNames{".las", ".laz", ".ply", ".pcd",
                                                     ".xyz", ".pts", ".asc", ".mcap"};
    return std::find(kNames.begin(), kNames.end(), lower_case(path.extension().string())) != kNames.end();
}

/// A drive, and its scans by the names of their files: looking for each of n scans must not take n steps.
struct KnownDrive {
    std::shared_ptr<const io::Drive> drive;
    std::unordered_multimap<std::string, const io::DriveScan*> by_name;

    const io::DriveScan* find(const fs::path& file) const {
        const auto [begin, end] = by_name.equal_range(file.filename().string());
        const auto found = std::find_if(
            begin, end, [&](const auto& scan) { return fs::equivalent(scan.second->path, file); });
        return found == end ? nullptr : found->second;
    }
};

class Expander {
  public:
    Expander(const io::DriveOptions& drives, const CancelToken& cancel) : options_(drives), cancel_(cancel) {}

    void add(const std::string& argument, const fs::path& base, int depth) {
        if (argument.starts_with('@')) return add_list(resolve(argument.substr(1), base), depth);
        const fs::path path = resolve(argument, base);
        std::error_code error;
        const auto status = fs::status(path, error);
        if (fs::is_directory(status)) return add_folder(path);
        if (fs::exists(status) && lower_case(path.extension().string()) == ".vpc")
            return add_virtual_cloud(path);
        if (fs::exists(status)) return add_file(path);
        if (argument.find_first_of("*?[") != std::string::npos) return add_pattern(path);
        throw IoError("cannot open " + path.string() + ": " +
                      (error ? error.message() : "No such file or directory"));
    }

    std::vector<InputSource> take() {
        std::vector<InputSource> sources;
        for (auto& [key, source] : found_) sources.push_back(std::move(source));
        return sources;
    }

  private:
    static fs::path resolve(const std::string& text, const fs::path& base) {
        const fs::path path(text);
        return path.is_absolute() || base.empty() ? path : base / path;
    }

    void insert(InputSource source) {
        std::error_code error;
        fs::path key = fs::canonical(source.path, error);
        if (error) key = source.path;
        found_.emplace(key.string(), std::move(source));
    }

    void add_list(const fs::path& list, int depth) {
        if (depth >= kMaxListDepth)
            throw UsageError(list.string() + ": lists of lists of lists: does it name itself?");
        const std::string text = read_text_file(list);
        bool names_nothing = true;
        for (const Line& whole_line : Lines(text)) {
            cancel_.check();
            const std::string line(trimmed(whole_line.text));
            if (line.empty() || line[0] == '#') continue;
            add(line, list.parent_path(), depth + 1);
            names_nothing = false;
        }
        if (names_nothing) throw InputError(list.string() + ": this list names no inputs");
    }

    void add_virtual_cloud(const fs::path& path) {
        for (const fs::path& file : io::virtual_cloud_files(path)) {
            cancel_.check();
            if (!fs::is_regular_file(file))
                throw IoError("cannot open " + file.string() + ", named in " + path.string() +
                              ": no such file");
            add_file(file);
        }
    }

    void add_pattern(const fs::path& pattern) {
        const std::vector<fs::path> paths = io::matches_of(pattern.string());
        if (paths.empty()) throw InputError("no file matches " + pattern.string());
        for (const auto& path : paths) {
            cancel_.check();
            if (fs::is_directory(path))
                add_folder(path);
            else if (lower_case(path.extension().string()) == ".vpc")
                add_virtual_cloud(path);
            else
                add_file(path);
        }
    }

    void add_folder(const fs::path& folder) {
        if (io::is_drive(folder, options_)) return add_drive(folder);
        // A folder inside of a drive: those of its scans that are below it.
        if (const auto around = drive_around(folder / "scan"); around && add_scans_below(folder, *around))
            return;
        const std::size_t before = found_.size();
        io::DriveOptions without_clouds = options_;  // clouds with poses are found by their clouds
        without_clouds.use_poses_tum = false;
        std::vector<fs::path> drives;
        for (auto at = fs::recursive_directory_iterator(folder); at != fs::recursive_directory_iterator();
             ++at) {
            cancel_.check();
            const bool hidden = at->path().filename().string().starts_with('.');
            if (at->is_directory()) {
                const bool drive = !hidden && io::is_drive(at->path(), without_clouds);
                if (drive) drives.push_back(at->path());
                if (hidden || drive) at.disable_recursion_pending();
            }
            if (hidden || !is_point_file(at->path())) continue;
            if (!at->exists()) require_file(at->path());  // a link to nothing: points that are not there
            if (at->is_regular_file()) add_file(at->path());
        }
        // What simulate wrote beside the clouds that it was made from is not meant.
        if (found_.size() == before)
            std::for_each(drives.begin(), drives.end(), [&](const auto& d) { add_drive(d); });
        if (found_.size() == before) throw InputError(nothing_in(folder));
    }

    static std::string nothing_in(const fs::path& folder) {
        const std::string missing = io::missing_for_drive(folder);
        return folder.string() +
               ": no point files in this folder (.las, .laz, .ply, .pcd, .xyz, .pts, .asc, .mcap), and it is "
               "not a "
               "drive of KITTI or nuScenes" +
               (missing.empty() ? "" : ": " + missing) + " (docs/inputs.md)";
    }

    bool add_scans_below(const fs::path& folder, const fs::path& drive_folder) {
        const KnownDrive& known = drive_at(drive_folder);
        const std::string below = fs::canonical(folder).string() + "/";
        bool any = false;
        for (const io::DriveScan& scan : known.drive->scans) {
            cancel_.check();
            if (!fs::canonical(scan.path).string().starts_with(below)) continue;
            insert({scan.path, scan.labels, known.drive, &scan});
            any = true;
        }
        return any;
    }

    /// A file that was named: as a scan, when it is one of a drive.
    void add_file(const fs::path& path) {
        const auto folder = drive_around(path);
        if (!folder) return insert({path});
        const KnownDrive& known = drive_at(*folder);
        if (const io::DriveScan* scan = known.find(path))
            return insert({path, scan->labels, known.drive, scan});
        if (lower_case(path.extension().string()) == ".bin")
            throw InputError(path.string() + ": not one of the " + std::to_string(known.drive->scans.size()) +
                             " scans of the drive in " + folder->string() +
                             "; --no-drive reads the file as it is, --scene chooses a scene of nuScenes");
        insert({path});
    }

    void add_drive(const fs::path& folder) {
        const KnownDrive& known = drive_at(folder);
        for (const io::DriveScan& scan : known.drive->scans) {
            cancel_.check();
            insert({scan.path, scan.labels, known.drive, &scan});
        }
    }

    /// The drive that a file would belong to; looked for once a folder.
    std::optional<fs::path> drive_around(const fs::path& file) {
        const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
        const auto [at, is_new] = around_.try_emplace(folder.string());
        if (is_new) at->second = io::drive_folder_of(file, options_);
        return at->second;
    }

    const KnownDrive& drive_at(const fs::path& folder) {
        KnownDrive& known = drives_[fs::canonical(folder).string()];
        if (known.drive) return known;
        known.drive =
            std::make_shared<const io::Drive>(io::read_drive(folder, options_, open_scan_of_drive, cancel_));
        for (const io::DriveScan& scan : known.drive->scans)
            known.by_name.emplace(scan.path.filename().string(), &scan);
        refuse_other_origin(*known.drive);
        return known;
    }

    /// Each KITTI raw drive begins at 0, 0, 0 unless it is told otherwise: two would lie on each other.
    void refuse_other_origin(const io::Drive& drive) {
        if (!drive.origin || options_.origin) return;
        if (first_of_raw_.empty()) {
            first_of_raw_ = drive.folder;
            first_origin_ = *drive.origin;
            return;
        }
        char text[128];
        std::snprintf(text, sizeof text, "--origin %.9f %.9f %.3f", first_origin_.latitude_deg,
                      first_origin_.longitude_deg, first_origin_.altitude_m);
        throw UsageError(
            drive.folder.string() + " and " + first_of_raw_.string() +
            ": two drives of KITTI raw need one origin, or they would lie on each other. Say which, "
            "e.g. that of the first: " +
            text);
    }

    const io::DriveOptions& options_;
    const CancelToken& cancel_;
    std::map<std::string, KnownDrive> drives_;                         ///< by canonical path
    std::unordered_map<std::string, std::optional<fs::path>> around_;  ///< drives by folder of files
    fs::path first_of_raw_;                                            ///< the drive that first_origin_ is of
    io::DriveOptions::Geodetic first_origin_{};
    std::map<std::string, InputSource> found_;  ///< by canonical path: sorted, each once
};

void attach_labels(std::vector<InputSource>& sources, const fs::path& labels) {
    if (!fs::is_directory(labels)) {
        if (sources.size() != 1)
            throw UsageError(labels.string() + ": one label file for " + std::to_string(sources.size()) +
                             " clouds; give a folder with one per cloud");
        sources[0].labels = labels;
        return;
    }
    for (auto& source : sources) {
        fs::path found;
        for (const char* extension : {".label", ".labels", ".npy", ".txt"}) {
            const fs::path candidate = labels / (source.path.stem().string() + extension);
            if (found.empty() && fs::exists(candidate)) found = candidate;
        }
        if (found.empty())
            throw InputError(labels.string() + ": no labels for " + source.path.string() + "; expected " +
                             source.path.stem().string() + " with .label, .labels, .npy or .txt");
        source.labels = found;
    }
}

}  // namespace

ReadOptions InputSource::read_options(ReadOptions options) const {
    if (!labels.empty()) options.labels = labels;
    if (scan) {
        options.sweep = scan->sweep;
        options.mask.own_car = drive->own_car;
    }
    return options;
}

std::unique_ptr<PointFile> InputSource::open(const ReadOptions& options) const {
    return open_point_file(path, read_options(options));
}

std::vector<InputSource> expand_inputs(std::span<const std::string> arguments, const fs::path& labels,
                                       const io::DriveOptions& drives, const CancelToken& cancel) {
    Expander expander(drives, cancel);
    for (const auto& argument : arguments) expander.add(argument, {}, 0);
    std::vector<InputSource> sources = expander.take();
    if (!labels.empty()) attach_labels(sources, labels);
    return sources;
}

std::vector<std::shared_ptr<const io::Drive>> drives_of(std::span<const InputSource> sources) {
    std::vector<std::shared_ptr<const io::Drive>> drives;
    for (const InputSource& source : sources)
        if (source.drive && std::find(drives.begin(), drives.end(), source.drive) == drives.end())
            drives.push_back(source.drive);
    return drives;
}

std::optional<std::string> missing_labels(std::span<const InputSource> sources) {
    std::set<const io::Drive*> labelled;
    for (const auto& source : sources)
        if (source.drive && std::any_of(source.drive->scans.begin(), source.drive->scans.end(),
                                        [](const io::DriveScan& scan) { return !scan.labels.empty(); }))
            labelled.insert(source.drive.get());
    std::size_t missing = 0;
    const InputSource* first = nullptr;
    for (const auto& source : sources) {
        if (!labelled.contains(source.drive.get()) || !source.labels.empty()) continue;
        if (missing++ == 0) first = &source;
    }
    if (!first) return std::nullopt;
    return std::to_string(missing) + " of " + std::to_string(sources.size()) +
           " clouds have no label file, though their drive has labels; the first is " + first->path.string();
}

}  // namespace citysplat
