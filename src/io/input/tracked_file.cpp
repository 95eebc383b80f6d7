#include "io/input/tracked_file.hpp"

#include "core/error.hpp"
#include "io/tracks/track_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citysplat::io {

namespace {

class UntrackedFile final : public PointFile {
  public:
    UntrackedFile(std::unique_ptr<PointFile> file, std::shared_ptr<const TrackedBoxes> tracked,
                  std::string name)
        : file_(std::move(file)), tracked_(std::move(tracked)), name_(std::move(name)) {
        if (!file_->info().has_gps_time) refuse();
    }

    const PointFileInfo& info() const override { return file_->info(); }
    std::size_t block_count() const override { return file_->block_count(); }

    void read_block(std::size_t index, PointBatch& out) const override {
        file_->read_block(index, out);
        if (out.size() == 0) return;
        if (out.gps_time.empty()) refuse();
        double begin_s = std::numeric_limits<double>::infinity(), end_s = -begin_s;
        for (const double t : out.gps_time)
            if (std::isfinite(t)) begin_s = std::min(begin_s, t), end_s = std::max(end_s, t);
        const MovingBoxes::Near near = tracked_->boxes.during(begin_s, end_s);
        std::vector<std::uint8_t> gone(out.size());
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (near.contain({out.x[i], out.y[i], out.z[i]}, out.gps_time[i])) gone[i] = 1, ++count;
        if (count == 0) return;
        out.masked[static_cast<std::size_t>(SensorMask::Reason::box)] += count;
        out.remove(gone);
    }

  private:
    [[noreturn]] void refuse() const {
        throw InputError(name_ +
                         ": its points have no times, so nobody knows which of them are in a box of " +
                         tracked_->file.string() +
                         " (--tracks); give the folder of the drive, clouds with a time column, or leave out "
                         "--tracks");
    }

    std::unique_ptr<PointFile> file_;
    std::shared_ptr<const TrackedBoxes> tracked_;
    std::string name_;
};

}  // namespace

std::shared_ptr<const TrackedBoxes> read_tracked_boxes(const std::filesystem::path& file) {
    const Hash128 hash = hash_file(file, CancelToken());
    return std::make_shared<TrackedBoxes>(
        TrackedBoxes{MovingBoxes(read_tracks(file, {}).tracks), std::filesystem::absolute(file), hash});
}

std::unique_ptr<PointFile> without_tracked(std::unique_ptr<PointFile> file,
                                           std::shared_ptr<const TrackedBoxes> tracked,
                                           const std::string& file_name) {
    return std::make_unique<UntrackedFile>(std::move(file), std::move(tracked), file_name);
}

}  // namespace citysplat::io
