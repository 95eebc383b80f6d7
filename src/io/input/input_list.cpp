#include "io/input/input_list.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/input/open_point_file.hpp"

#include <algorithm>
#include <array>
#include <glob.h>
#include <map>
#include <set>

namespace citysplat {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxListDepth = 4;

/// What a folder is searched for. Text files are left out unless their name says points: a .txt or .csv in a
/// folder is as likely a trajectory or a readme.
bool is_point_file(const fs::path& path) {
    constexpr std::array<std::string_view, 7> kNames{".las", ".laz", ".ply", ".pcd", ".xyz", ".pts", ".asc"};
    return std::find(kNames.begin(), kNames.end(), lower_case(path.extension().string())) != kNames.end();
}

class Expander {
  public:
    explicit Expander(const io::DriveOptions& drives) : options_(drives) {}

    void add(const std::string& argument, const fs::path& base, int depth) {
        if (argument.starts_with('@')) return add_list(resolve(argument.substr(1), base), depth);
        const fs::path path = resolve(argument, base);
        std::error_code error;
        const auto status = fs::status(path, error);
        if (fs::is_directory(status)) return add_folder(path);
        if (fs::exists(status)) return add_file(path);
        if (argument.find_first_of("*?[") != std::string::npos) return add_pattern(path);
        throw IoError("cannot open " + path.string() + ": No such file or directory");
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
            const std::string line(trimmed(whole_line.text));
            if (line.empty() || line[0] == '#') continue;
            add(line, list.parent_path(), depth + 1);
            names_nothing = false;
        }
        if (names_nothing) throw InputError(list.string() + ": this list names no inputs");
    }

    void add_pattern(const fs::path& pattern) {
        ::glob_t matches{};
        const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
        std::vector<fs::path> paths(matches.gl_pathv,
                                    matches.gl_pathv + (result == 0 ? matches.gl_pathc : 0));
        ::globfree(&matches);
        if (paths.empty()) throw InputError("no file matches " + pattern.string());
        for (const auto& path : paths) {
            if (fs::is_directory(path))
                add_folder(path);
            else
                add_file(path);
        }
    }

    void add_folder(const fs::path& folder) {
        if (io::is_drive(folder, options_)) return add_drive(folder);
        const std::size_t before = found_.size();
        for (auto at = fs::recursive_directory_iterator(folder); at != fs::recursive_directory_iterator();
             ++at) {
            const bool hidden = at->path().filename().string().starts_with('.');
            if (hidden && at->is_directory()) at.disable_recursion_pending();
            if (!hidden && at->is_regular_file() && is_point_file(at->path())) insert({at->path()});
        }
        if (found_.size() == before)
            throw InputError(
                folder.string() +
                ": no point files in this folder (.las, .laz, .ply, .pcd, .xyz, .pts, .asc), and it is not a "
                "drive of KITTI or nuScenes (docs/inputs.md)");
    }

    /// A file that was named: as a scan, when it is one of a drive.
    void add_file(const fs::path& path) {
        const auto folder = io::drive_folder_of(path, options_);
        if (!folder) return insert({path});
        const auto drive = drive_at(*folder);
        if (const io::DriveScan* scan = drive->find(path)) return insert({path, scan->labels, drive, scan});
        insert({path});
    }

    void add_drive(const fs::path& folder) {
        const auto drive = drive_at(folder);
        for (const io::DriveScan& scan : drive->scans) insert({scan.path, scan.labels, drive, &scan});
    }

    std::shared_ptr<const io::Drive> drive_at(const fs::path& folder) {
        auto& drive = drives_[fs::canonical(folder).string()];
        if (!drive)
            drive = std::make_shared<const io::Drive>(io::read_drive(folder, options_, open_scan_of_drive));
        return drive;
    }

    const io::DriveOptions& options_;
    std::map<std::string, std::shared_ptr<const io::Drive>> drives_;  ///< by canonical path
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
                                       const io::DriveOptions& drives) {
    Expander expander(drives);
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
