#include "io/tracks/track_file.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "io/tracks/track_formats.hpp"

#include <algorithm>

namespace citysplat {

namespace {

using Format = TrackOptions::Format;

/// By the name of a folder or the first element of XML; text with a line of names is CSV.
Format detect(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) return Format::nuscenes;
    const File file(path, File::Mode::read);
    constexpr std::uint64_t kLookBytes = 64 * 1024;  // SUMO puts its whole configuration in front
    std::string start(static_cast<std::size_t>(std::min(file.size(), kLookBytes)), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(start.data(), start.size())));
    const auto has = [&](std::string_view word) { return start.find(word) != std::string::npos; };
    if (has("<boost_serialization") || has("<tracklets")) return Format::kitti_tracklets;
    if (has("<opencv_storage")) return Format::kitti_360;
    if (has("<fcd-export")) return Format::sumo;
    // Seventeen words, the third a class.
    for (const Line& line : Lines(start)) {
        const auto words = words_of(line.text);
        if (words.empty()) continue;
        const bool number = words[0].find_first_not_of("0123456789") == std::string_view::npos;
        if (number && (words.size() == 17 || words.size() == 18)) return Format::kitti_tracking;
        break;
    }
    return Format::csv;
}

}  // namespace

TrackFile read_tracks(const std::filesystem::path& path, const TrackOptions& options,
                      const CancelToken& cancel) {
    const Format format = options.format == Format::automatic ? detect(path) : options.format;
    io::TrackBuilder boxes(path.string(), options);
    const io::TrackRequest request{path, options, boxes, cancel};
    switch (format) {
        case Format::kitti_tracking:
            io::read_kitti_tracking(request);
            break;
        case Format::kitti_tracklets:
            io::read_kitti_tracklets(request);
            break;
        case Format::kitti_360:
            io::read_kitti_360(request);
            break;
        case Format::nuscenes:
            io::read_nuscenes_tracks(request);
            break;
        case Format::sumo:
            io::read_sumo_tracks(request);
            break;
        default:
            io::read_csv_tracks(request);
    }
    return std::move(boxes).finish();
}

}  // namespace citysplat
