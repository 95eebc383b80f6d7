#include "gis/ept_writer.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "gis/ept_index.hpp"
#include "gis/ept_tree.hpp"
#include "io/bag/zstd_block.hpp"
#include "io/bytes_le.hpp"
#include "tiling/sector.hpp"

#include <algorithm>
#include <deque>
#include <set>

namespace citysplat::gis {

namespace fs = std::filesystem;
using tiling::Sector;

namespace {

constexpr std::size_t kPointBytes = 33;

/// Points as they stand in a node, and back.
class PointCodec {
  public:
    explicit PointCodec(const EptCube& cube) {
        const std::int64_t half = cube.side_m() / 2;
        offset_ = {(cube.min_x_m + half) * kLatticePerMetre, (cube.min_y_m + half) * kLatticePerMetre,
                   (cube.min_z_m + half) * kLatticePerMetre};
    }
    std::vector<std::byte> encode(const std::vector<EptPoint>& points) const {
        std::vector<std::byte> bytes(points.size() * kPointBytes);
        std::byte* at = bytes.data();
        const auto put = [&at](auto value) {
            io::store_le(at, value);
            at += sizeof value;
        };
        for (const EptPoint& p : points) {
            put(static_cast<std::int32_t>(p.place.x - offset_.x));
            put(static_cast<std::int32_t>(p.place.y - offset_.y));
            put(static_cast<std::int32_t>(p.place.z - offset_.z));
            put(p.intensity);
            put(static_cast<std::uint8_t>(p.label < 256 ? p.label : 0));
            put(p.normal.x), put(p.normal.y), put(p.normal.z);
            put(p.radius_m);
            put(p.label);
        }
        return io::compress_zstd(bytes);
    }
    std::vector<EptPoint> decode(const fs::path& path, std::uint64_t count) const {
        std::vector<std::byte> bytes(count * kPointBytes);
        if (!io::decompress_zstd(read_file(path), bytes))
            throw InputError(path.string() + " is damaged, or has not the " + std::to_string(count) +
                             " points of the hierarchy; export into a new directory");
        std::vector<EptPoint> points(count);
        const std::byte* at = bytes.data();
        for (EptPoint& p : points) {
            p.place = {io::load_le<std::int32_t>(at) + offset_.x,
                       io::load_le<std::int32_t>(at + 4) + offset_.y,
                       io::load_le<std::int32_t>(at + 8) + offset_.z};
            p.intensity = io::load_le<std::uint16_t>(at + 12);
            p.normal = {io::load_le<float>(at + 15), io::load_le<float>(at + 19),
                        io::load_le<float>(at + 23)};
            p.radius_m = io::load_le<float>(at + 27);
            p.label = io::load_le<std::uint16_t>(at + 31);
            at += kPointBytes;
        }
        return points;
    }

  private:
    LatticePoint offset_;
};

/// Tiles by sector, and the few that were loaded last.
class SectorPoints {
  public:
    explicit SectorPoints(const TileSource& city) : city_(city) {}

    /// The sectors that the splats of a tile lie in.
    std::vector<Sector> sectors_of(std::size_t i) {
        std::set<Sector> sectors;
        const SplatTile& tile = load(i);
        const LatticePoint origin = tile.frame().origin();
        for (std::size_t k = 0; k < tile.size(); ++k) {
            const Splat s = tile.splat(k);
            sectors.insert(tiling::sector_of(origin.x + s.x, origin.y + s.y));
        }
        return {sectors.begin(), sectors.end()};
    }
    void place(std::size_t tile, const std::vector<Sector>& sectors) {
        for (const Sector& s : sectors) tiles_[s].push_back(tile);
    }
    std::size_t sectors() const { return tiles_.size(); }

    std::vector<EptPoint> read(const Sector& sector) {
        std::vector<EptPoint> points;
        const auto found = tiles_.find(sector);
        if (found == tiles_.end()) return points;
        const LatticeBox box = sector.box();
        for (const std::size_t i : found->second) {
            const SplatTile& tile = load(i);
            const LatticePoint origin = tile.frame().origin();
            for (std::size_t k = 0; k < tile.size(); ++k) {
                const Splat s = tile.splat(k);
                const LatticePoint at{origin.x + s.x, origin.y + s.y, origin.z + s.z};
                if (box.contains(at.x, at.y))
                    points.push_back(
                        {at, unpack_normal(s.normal), tile.disc(k).radius, s.intensity, s.label});
            }
        }
        return points;
    }

  private:
    const SplatTile& load(std::size_t i) {
        constexpr std::size_t kKept = 4;
        for (const auto& [index, tile] : loaded_)
            if (index == i) return tile;
        if (loaded_.size() == kKept) loaded_.pop_front();
        return loaded_.emplace_back(i, city_.load(i)).second;
    }
    const TileSource& city_;
    std::map<Sector, std::vector<std::size_t>> tiles_;
    std::deque<std::pair<std::size_t, SplatTile>> loaded_;
};

std::uint64_t morton(std::uint64_t x, std::uint64_t y) {
    std::uint64_t code = 0;
    for (int bit = 0; bit < 32; ++bit) code |= (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1);
    return code;
}

std::array<double, 6> box_of(const TileSource& city) {
    std::array<double, 6> box{};
    bool first = true;
    for (const TileEntry& t : city.tiles()) {
        const std::array<double, 6> b{t.min.x, t.min.y, t.min.z, t.max.x, t.max.y, t.max.z};
        for (std::size_t a = 0; a < 6; ++a)
            box[a] = first ? b[a] : a < 3 ? std::min(box[a], b[a]) : std::max(box[a], b[a]);
        first = false;
    }
    return box;
}

class EptRun {
  public:
    EptRun(const EptWish& wish, const fs::path& folder, std::optional<EptIndex> old)
        : wish_(wish),
          folder_(folder),
          sources_(wish.city),
          box_(box_of(wish.city)),
          is_update_(old && old->finished && old->tile_size_m == wish.tile_size_m && old->cube.holds(box_)),
          stale_(old && !is_update_),
          index_(is_update_ ? std::move(*old) : EptIndex{ept_cube_around(box_), wish.tile_size_m, {}, false}),
          codec_(index_.cube),
          hierarchy_(folder, index_.cube) {}

    EptReport run(const CancelToken& cancel, Progress& progress) {
        if (!is_update_) write_unfinished();
        if (stale_) remove_all();
        create_directories_durably(folder_ / "ept-data");
        create_directories_durably(folder_ / "ept-hierarchy");
        counts_ = is_update_ ? hierarchy_.read_top() : EptCounts();
        find_dirty(cancel);
        for (const TileEntry& tile : wish_.city.tiles()) report_.points += tile.splats;
        if (!dirty_.empty() || !is_update_) make(cancel, progress);
        report_.kept_some = is_update_;
        report_.sectors = sources_.sectors();
        report_.sectors_made = dirty_.size();
        return report_;
    }

  private:
    int leaf() const { return index_.cube.leaf_depth; }
    fs::path file_of(const EptKey& key) const { return folder_ / "ept-data" / (key.text() + ".zst"); }
    std::pair<std::int64_t, std::int64_t> column_of(const Sector& s, int depth) const {
        const int up = leaf() - depth;
        return {(s.x - index_.cube.min_x_m / kEptLeafSide_m) >> up,
                (s.y - index_.cube.min_y_m / kEptLeafSide_m) >> up};
    }

    /// Says whose the directory is before there is anything else in it.
    void write_unfinished() {
        index_.finished = false;
        index_.write(folder_);
    }

    /// The city has outgrown the cube or has other tiles, or the last run was stopped: what was there is of
    /// no use.
    void remove_all() {
        for (const char* name : {"ept.json", "ept-data", "ept-hierarchy"}) fs::remove_all(folder_ / name);
    }

    /// Sectors of tiles that are others than the index says; forgets these there.
    void find_dirty(const CancelToken& cancel) {
        std::set<Sector> dirty;
        next_.clear();
        for (std::size_t i = 0; i < wish_.city.tiles().size(); ++i) {
            cancel.check();
            const TileKey key = wish_.city.tiles()[i].key;
            EptIndex::Tile& now = next_[key];
            const auto old = index_.tiles.find(key);
            if (old != index_.tiles.end() && old->second.digest == wish_.digests.at(key)) {
                now = old->second;
            } else {
                now = {wish_.digests.at(key), sources_.sectors_of(i)};
                dirty.insert(now.sectors.begin(), now.sectors.end());
            }
            sources_.place(i, now.sectors);
        }
        std::erase_if(index_.tiles, [&](const auto& tile) {
            const auto now = next_.find(tile.first);
            const bool same = now != next_.end() && now->second == tile.second;
            if (!same) dirty.insert(tile.second.sectors.begin(), tile.second.sectors.end());
            return !same;
        });
        dirty_.assign(dirty.begin(), dirty.end());
        std::sort(dirty_.begin(), dirty_.end(), [&](const Sector& a, const Sector& b) {
            const auto code = [&](const Sector& s) {
                const auto [x, y] = column_of(s, leaf());
                return morton(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y));
            };
            return code(a) < code(b);
        });
        dirty_set_ = std::move(dirty);
    }

    void make(const CancelToken& cancel, Progress& progress) {
        if (is_update_) write_unfinished();
        Progress::Stage stage(progress, "ept", dirty_.size(), "sectors");
        for (std::size_t i = 0; i < dirty_.size(); ++i) {
            cancel.check();
            make_sector(dirty_[i]);
            for (int depth = leaf() - 1; depth >= 0; --depth) {
                const auto here = column_of(dirty_[i], depth);
                if (i + 1 == dirty_.size() || column_of(dirty_[i + 1], depth) != here)
                    finish_above(depth, here);
            }
            stage.advance(1);
        }
        add_empty_nodes();
        hierarchy_.write_top(counts_);
        for (const fs::path& path : unused_) report_.nodes_removed += fs::remove(path);
        write_ept_json(folder_, index_.cube, {report_.points, box_, wish_.city.crs()});
        index_.tiles = next_;
        index_.finished = true;
        index_.write(folder_);
    }

    /// Nodes at the leaf depth and below; leaves to the nodes above what they get of this sector.
    void make_sector(const Sector& sector) {
        const auto [x, y] = column_of(sector, leaf());
        std::set<EptKey> old_nodes;
        const auto first = counts_.lower_bound({leaf(), x, y, 0});
        auto last = first;
        for (;
             last != counts_.end() && last->first.depth == leaf() && last->first.x == x && last->first.y == y;
             ++last) {
            old_nodes.insert(last->first);
            if (last->second == EptHierarchy::kElsewhere)
                for (const auto& [key, count] : hierarchy_.read_below(last->first)) old_nodes.insert(key);
        }
        std::set<EptKey> old_leaves;
        for (auto at = first; at != last; ++at) old_leaves.insert(at->first);
        counts_.erase(first, last);

        std::map<EptKey, EptCounts> below;  // by the leaf that they are under
        auto points = sources_.read(sector);
        if (!points.empty())
            for (auto& [key, part] : ept_nodes(index_.cube, std::move(points))) {
                if (key.depth < leaf()) {
                    auto& above = above_[key];
                    above.insert(above.end(), part.begin(), part.end());
                    continue;
                }
                write_node(key, std::move(part), below[leaf_over(key)]);
                old_nodes.erase(key);
            }
        for (const auto& [top, counts] : below) {
            hierarchy_.write_below(top, counts);
            old_leaves.erase(top);
            counts_[top] = counts.size() > 1 ? EptHierarchy::kElsewhere : counts.begin()->second;
        }
        for (const EptKey& key : old_leaves) hierarchy_.write_below(key, {});
        for (const EptKey& key : old_nodes) unused_.push_back(file_of(key));
    }

    EptKey leaf_over(const EptKey& key) const {
        const int up = key.depth - leaf();
        return {leaf(), key.x >> up, key.y >> up, key.z >> up};
    }

    void write_node(const EptKey& key, std::vector<EptPoint> points, EptCounts& counts) {
        std::sort(points.begin(), points.end());
        const auto bytes = codec_.encode(points);
        OutputFile file(file_of(key), OutputFile::Buffering::none);
        file.writer().write(bytes);
        file.commit();
        counts[key] = points.size();
        ++report_.nodes_written;
    }

    /// Everything below this column is made: its nodes are what was there, without the dirty sectors, and
    /// what these brought.
    void finish_above(int depth, const std::pair<std::int64_t, std::int64_t>& column) {
        const EptKey from{depth, column.first, column.second, 0};
        const auto is_here = [&](const EptKey& k) {
            return k.depth == depth && k.x == column.first && k.y == column.second;
        };
        for (auto at = counts_.lower_bound(from); at != counts_.end() && is_here(at->first); ++at) {
            auto& points = above_[at->first];
            for (EptPoint& p : codec_.decode(file_of(at->first), at->second))
                if (!dirty_set_.contains(tiling::sector_of(p.place.x, p.place.y))) points.push_back(p);
        }
        for (auto at = above_.lower_bound(from); at != above_.end() && is_here(at->first);
             at = above_.erase(at)) {
            counts_.erase(at->first);
            if (at->second.empty())
                unused_.push_back(file_of(at->first));
            else
                write_node(at->first, std::move(at->second), counts_);
        }
    }

    /// A reader finds a node by those above it, also where these have no points of their own.
    void add_empty_nodes() {
        std::set<EptKey> missing;
        for (const auto& [key, count] : counts_)
            for (EptKey up = key; up.depth > 0;) {
                up = {up.depth - 1, up.x >> 1, up.y >> 1, up.z >> 1};
                if (!counts_.contains(up) && !missing.insert(up).second) break;
            }
        for (const EptKey& key : missing) write_node(key, {}, counts_);
        std::erase_if(unused_, [&](const fs::path& path) {
            return std::any_of(missing.begin(), missing.end(),
                               [&](const EptKey& key) { return file_of(key) == path; });
        });
    }

    const EptWish& wish_;
    const fs::path folder_;
    SectorPoints sources_;
    std::array<double, 6> box_;
    bool is_update_, stale_;
    EptIndex index_;
    PointCodec codec_;
    EptHierarchy hierarchy_;
    std::map<TileKey, EptIndex::Tile> next_;  ///< what the index says in the end
    std::vector<Sector> dirty_;               ///< in the order of the tree
    std::set<Sector> dirty_set_;
    EptCounts counts_;  ///< down to the leaf depth
    EptNodes above_;    ///< nodes whose sectors are not all made
    std::vector<fs::path> unused_;
    EptReport report_;
};

}  // namespace

EptReport write_ept(const EptWish& wish, const fs::path& folder, const CancelToken& cancel,
                    Progress& progress) {
    if (wish.city.tiles().empty()) throw UsageError("the city has no splats to export");
    if (fs::exists(folder) && !fs::is_directory(folder))
        throw ConfigError(folder.string() + " is a file; an EPT is a directory");
    create_directories_durably(folder);
    const OutputFile turn(folder / "ept-writer");  // of two at once the second one ends here
    std::optional<EptIndex> old = EptIndex::read(folder);
    // A run that was killed while it wrote its first index leaves a part of that, and nothing else.
    const std::string part_of_index = OutputFile::partial_of(kEptIndexFile).string();
    if (!old)
        for (const auto& entry : fs::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            if (!name.starts_with("ept-writer") && name != part_of_index)
                throw ConfigError(folder.string() + " holds " + name +
                                  ", and nothing that says which city it is of; name a new directory");
        }
    return EptRun(wish, folder, std::move(old)).run(cancel, progress);
}

}  // namespace citysplat::gis
