#pragma once

#include "io/drive/nuscenes_tables.hpp"
#include "io/tracks/track_builder.hpp"
#include "io/tracks/track_file.hpp"

/// The single formats of tracks; read_tracks() picks one.
namespace citysplat::io {

/// What a reader is given: where the file is, how to understand it, and where its boxes go.
struct TrackRequest {
    const std::filesystem::path& path;
    const TrackOptions& options;
    TrackBuilder& boxes;
    const CancelToken& cancel;
};

void read_csv_tracks(const TrackRequest& request);
void read_kitti_tracking(const TrackRequest& request);
void read_kitti_tracklets(const TrackRequest& request);
void read_kitti_360(const TrackRequest& request);
void read_nuscenes_tracks(const TrackRequest& request);
void read_sumo_tracks(const TrackRequest& request);

/// Tables by name, as the fuzzer has them.
void read_nuscenes_annotations(const OpenTable& open, const TrackOptions& options, TrackBuilder& boxes,
                               const CancelToken& cancel);

}  // namespace citysplat::io
