#include "view/scans/distance_cloud.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "io/points/ply_file.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace citysplat::view {

namespace {

constexpr double kTile_m = 64;
/// Splats reach 1 km from the frame of their tile.
constexpr double kHighest_m = 1000;

TileKey tile_at(double x, double y) {
    const auto index = [](double v) { return static_cast<std::int32_t>(std::floor(v / kTile_m)); };
    return {0, index(x), index(y)};
}

}  // namespace

DistanceCloud::DistanceCloud(const std::filesystem::path& path)
    : name_(path.filename().string()), histogram_(65536) {
    ReadOptions options;
    options.intensity_range = {0, 65535};
    file_ = io::open_ply(File(path, File::Mode::read), options);
    const auto& columns = file_->info().columns;
    if (std::find(columns.begin(), columns.end(), "distance") == columns.end() ||
        !file_->info().has_intensity)
        throw InputError(path.string() + ": this is not what compare --distances writes");
    struct Found {
        TileEntry entry;
        std::vector<std::size_t> blocks;
    };
    std::map<TileKey, Found> tiles;
    PointBatch batch;
    for (std::size_t block = 0; block < file_->block_count(); ++block) {
        file_->read_block(block, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const Vec3d at{batch.x[i], batch.y[i], batch.z[i]};
            const TileKey key = tile_at(at.x, at.y);
            const auto [found, is_new] = tiles.try_emplace(key);
            auto& [entry, blocks] = found->second;
            if (is_new) entry = {key, 0, 0, at, at};
            ++entry.splats;
            entry.min = {std::min(entry.min.x, at.x), std::min(entry.min.y, at.y),
                         std::min(entry.min.z, at.z)};
            entry.max = {std::max(entry.max.x, at.x), std::max(entry.max.y, at.y),
                         std::max(entry.max.z, at.z)};
            if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
            ++histogram_[batch.intensity[i]];
        }
        points_ += batch.size();
    }
    for (auto& [key, found] : tiles) {
        TileEntry& entry = found.entry;
        const Vec3d radius{kRadius_m, kRadius_m, kRadius_m};
        entry.payload_bytes = SplatTile::body_bytes(entry.splats);
        entry.min = entry.min - radius;
        entry.max = entry.max + radius;
        entry.max.z = std::min(entry.max.z, entry.min.z + kHighest_m);
        entries_.push_back(entry);
        blocks_.push_back(std::move(found.blocks));
    }
}

SplatTile DistanceCloud::load(std::size_t tile) const {
    const TileEntry& entry = entries_[tile];
    const TileFrame frame{entry.key.ix * static_cast<std::int64_t>(kTile_m),
                          entry.key.iy * static_cast<std::int64_t>(kTile_m),
                          static_cast<std::int64_t>(std::floor(entry.min.z))};
    const LatticePoint origin = frame.origin();
    std::vector<Splat> splats;
    splats.reserve(entry.splats);
    PointBatch batch;
    for (const std::size_t block : blocks_[tile]) {
        file_->read_block(block, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (tile_at(batch.x[i], batch.y[i]) != entry.key || batch.z[i] > entry.max.z) continue;
            Splat splat{};
            splat.x = static_cast<std::int32_t>(to_lattice(batch.x[i]) - origin.x);
            splat.y = static_cast<std::int32_t>(to_lattice(batch.y[i]) - origin.y);
            splat.z = static_cast<std::int32_t>(to_lattice(batch.z[i]) - origin.z);
            splat.normal = pack_normal({0, 0, 1});
            splat.radius = static_cast<std::uint16_t>(kRadius_m * static_cast<double>(kLatticePerMetre));
            splat.label = batch.label.empty() ? std::uint16_t{0} : batch.label[i];
            splat.intensity = batch.intensity[i];
            splat.point_count = 1;
            splat.range = splat.incidence = kUnknownByte;
            splats.push_back(splat);
        }
    }
    return SplatTile(frame, splats);
}

double DistanceCloud::quantile_m(double share) const {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(points_)));
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram_.size(); ++i) {
        below += histogram_[i];
        if (below >= wanted && below > 0) return static_cast<double>(i) * kUnit_m;
    }
    return 0;
}

}  // namespace citysplat::view
