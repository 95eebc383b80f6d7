#pragma once

#include "core/math/lattice.hpp"
#include "fuzz.hpp"
#include "io/tracks/track_file.hpp"

#include <cmath>
#include <string_view>
#include <vector>

namespace citysplat::fuzz {

/// Reads the bytes as tracks. "-----" parts them into several files: the tracks, and those beside it.
inline void read_track_files(const std::uint8_t* data, std::size_t size, TrackOptions::Format format) {
    std::vector<std::unique_ptr<MemoryFile>> files;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (std::size_t at = 0; at <= text.size() && files.size() < 3;) {
        const std::size_t end = std::min(text.find("-----", at), text.size());
        files.push_back(std::make_unique<MemoryFile>(data + at, end - at));
        at = end + 5;
    }
    TrackOptions options;
    options.format = format;
    if (files.size() > 1) options.poses = options.types = options.times = files[1]->path();
    if (files.size() > 2) options.calibration = options.network = files[2]->path();
    // Poses have times of their own.
    if (format != TrackOptions::Format::kitti_360) options.times.clear();
    try {
        for (const Track& track : read_tracks(files[0]->path(), options).tracks) {
            track.check();
            for (const StampedPose& pose : track.path.poses())
                if (!(length(pose.world_from_body.translation) < 3 * kMaxWorld_m)) std::abort();
        }
    } catch (const Error&) {
    }
}

}  // namespace citysplat::fuzz
