#pragma once

#include "core/hash.hpp"
#include "core/math/lattice.hpp"
#include "model/tile_grid.hpp"
#include "tiling/store/city_paths.hpp"
#include "tiling/store/sqlite.hpp"
#include "tiling/tile_processor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace citysplat::tiling {

/// What happened to the points of one source, by the rules of tiling/points/point_rules.hpp.
struct PointCounts {
    std::uint64_t read = 0;            ///< in the file
    std::uint64_t kept = 0;            ///< in the city, duplicates within the source collapsed
    std::uint64_t not_finite = 0;      ///< a coordinate is NaN or infinite
    std::uint64_t out_of_range = 0;    ///< not on Earth
    std::uint64_t withheld = 0;        ///< marked as deleted by the producer
    std::uint64_t duplicates = 0;      ///< identical to another point of the source in all we keep
    std::uint64_t no_return = 0;       ///< no position, by the convention of the format
    std::uint64_t damaged = 0;         ///< left out by a salvaging reader
    std::uint64_t without_sensor = 0;  ///< kept, but nobody knows where the sensor was

    std::uint64_t accepted() const { return kept + duplicates; }
    std::uint64_t dropped() const {
        return not_finite + out_of_range + withheld + duplicates + no_return + damaged;
    }
    PointCounts& operator+=(const PointCounts& other);
    friend bool operator==(const PointCounts&, const PointCounts&) = default;
};

/// The content of one input file as the city keeps it: an archive object of its points on the lattice.
/// Identified by the bytes of the file and of its trajectory, never by name or date.
struct SourceRow {
    std::int64_t id = 0;
    Hash128 identity;  ///< of content, trajectory and the version of the partition
    Hash128 content;   ///< of the file's bytes
    std::uint64_t content_bytes = 0;
    Hash128 object;  ///< the archive
    std::uint64_t object_bytes = 0;
    std::string format, crs;
    PointCounts counts;
    LatticeBox bounds;  ///< of the kept points; max is exclusive
};

/// The points of one source in one 64 m sector (tiling/points/point_archive.hpp).
struct SegmentRow {
    std::int32_t sector_x = 0, sector_y = 0;
    std::uint64_t points = 0;             ///< after duplicates have collapsed
    std::uint64_t accepted = 0;           ///< before
    std::uint64_t offset = 0, bytes = 0;  ///< within the archive object
    Hash128 hash;                         ///< of the points, not of their encoding
    SectorBox reach;                      ///< where the rays of its points may have passed (points/ray.hpp)
    friend bool operator==(const SegmentRow&, const SegmentRow&) = default;
};

/// A source and where its points lie in the archive.
struct CitySource {
    SourceRow row;
    std::vector<SegmentRow> segments;
};

/// What the system says about a file: equal stamps save hashing it again, and decide nothing else.
struct FileStamp {
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    /// Inode and time of the last change of any kind (ctime), mixed: sees an edit whose author put the size
    /// and the time of modification back.
    std::uint64_t inode_and_ctime = 0;
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

struct InputRow {
    std::string path;        ///< absolute
    std::string trajectory;  ///< absolute; empty when none was given
    std::string reading;     ///< how both are to be read, in the words of the caller
    FileStamp stamp, trajectory_stamp;
    std::int64_t source = 0;
};

/// Generations are numbered from 1, and their numbers are places in the lock file (city_lock.hpp).
inline constexpr std::int64_t kMostGenerations = std::int64_t{1} << 39;

/// No processor looks farther; one that asks for more would ask forever.
inline constexpr std::int64_t kMostHaloSteps = 2048 * kLatticePerMetre;

/// What a processor made of one region: the memo of the builder, found by key.
struct ProductRow {
    std::int64_t id = 0;
    Hash128 key;   ///< of the points that were read and the parameters
    Hash128 core;  ///< of the points of the core alone: tells a changed core from a changed halo
    TileKey tile;
    std::optional<Hash128> object;  ///< nothing when nothing came out
    std::uint64_t object_bytes = 0;
    std::uint64_t points = 0;
    std::uint64_t splats = 0;  ///< of a mesh: triangles
    std::int64_t halo_steps = 0;
    Hash128 digest;
    std::array<double, 6> box{};  ///< min x y z, max x y z in metres around all discs, or triangles
    std::uint64_t removed = 0;    ///< points of the core that were left out because rays saw through them
};

inline void sort_by_tile(std::vector<ProductRow>& products) {
    std::sort(products.begin(), products.end(),
              [](const ProductRow& a, const ProductRow& b) { return a.tile < b.tile; });
}

struct GenerationRow {
    std::int64_t id = 0;
    std::int64_t created_s = 0;  ///< Unix time
    std::string note;            ///< "build", "rollback to 3", …
    std::int64_t tile_size_m = 0;
    Hash128 parameters_key;
    std::string parameters;  ///< for people: JSON of what the user chose
    std::string classes;     ///< TOML of the class map
    std::string crs;
    Calibration calibration;  ///< in use, frozen
    Calibration measured;     ///< of the inputs of this generation, for the drift
    std::uint64_t points = 0, tiles = 0, splats = 0;
    Hash128 digest;        ///< of all products
    std::string findings;  ///< what was noticed when the means were measured (TileProcessor::findings)
    std::int64_t findings_of = 0;  ///< the generation whose points were measured; 0: none was
    std::string tags;              ///< names that people gave it, sorted, with a space between two
    std::int64_t revision = 0;     ///< of two records of one generation the one with the higher number counts
    Hash128 record;                ///< object that says all this again (tiling/store/generation_record.hpp)
    std::uint64_t triangles = 0;
    /// The kinds of products that it has, each with the hash that its `parameters_key` would be if it were
    /// alone, in words (tiling/store/product_kinds.hpp). Empty: splats alone.
    std::string products;
};

/// The index of a city. One SQLite file with a rollback journal and synchronous=EXTRA (after a commit the
/// directory is synced as well, or a power cut could bring the journal back and undo it). Treated as
/// untrusted on open: application id, version, exact schema and quick_check; and when read: types and ranges.
/// Rows of inputs and tiles carry the generations they belong to as an interval [first, last]; a generation
/// exists when its row does, so that one transaction with that row flips the city. Not safe to share between
/// threads.
class Catalog {
  public:
    /// Creates an empty catalog at a path that does not exist.
    static void create(const std::filesystem::path& path);
    /// Throws ConfigError on a foreign or newer file, CorruptionError on a damaged one.
    static Catalog open_to_read(const std::filesystem::path& path);
    /// Brings a catalog of an earlier version up to date first.
    static Catalog open_to_write(const std::filesystem::path& path);

    /// While it lives, all that is read is of one moment, and a lock is taken once instead of for each row.
    /// Nothing may be written meanwhile.
    [[nodiscard]] Transaction reading() { return {db_, Transaction::Kind::read}; }

    std::optional<GenerationRow> latest();
    std::optional<GenerationRow> generation(std::int64_t id);
    std::vector<GenerationRow> history();

    std::vector<InputRow> inputs(std::int64_t generation);
    std::vector<ProductRow> tiles(std::int64_t generation);  ///< sorted by tile
    std::vector<SourceRow> sources();
    SourceRow source(std::int64_t id);
    std::optional<SourceRow> find_source(const Hash128& identity);
    bool has_content(std::uint64_t bytes);  ///< some source came from a file of this size
    std::vector<SegmentRow> segments(std::int64_t source);
    std::vector<ProductRow> products();
    /// Rows that no generation can have left: intervals that begin in the future or end before they begin,
    /// references to what is not there. In words, for `verify`.
    std::vector<std::string> misplaced_rows();

    /// Sources and products stand for themselves, before any generation uses them: that is what a killed
    /// build resumes from. Their objects must be durable.
    /// Adds all of them or none and returns their ids. A source of the same identity is replaced and keeps
    /// its id.
    std::vector<std::int64_t> add_sources(std::span<const CitySource> sources);
    void add_products(std::span<ProductRow> products);  ///< sets the ids; replaces those with the same key

    /// Flips the city: one transaction that adds the generation and everything it names. Requires a number
    /// above the latest. Use publish_generation(), which also writes the record.
    void publish(const GenerationRow& generation, std::span<const InputRow> inputs,
                 std::span<const ProductRow> tiles);
    /// Other tags, and for the latest generation also new stamps of inputs (a touched file), and the record
    /// that says so. Use refresh_generation() or set_tags(), which also write it.
    void revise(const GenerationRow& generation, std::span<const InputRow> inputs);
    /// Forgets these generations and every row that no other generation uses, but for the sources with these
    /// identities.
    void forget(std::span<const std::int64_t> generations, const std::set<Hash128>& kept_sources);

  private:
    Catalog(const std::filesystem::path& path, Database::Access access);
    std::int64_t insert(const CitySource& source);

    Database db_;
    std::int64_t version_;
};

/// Gives the city this catalog, a file of paths.new_temporary() that is whole and durable, in place of the
/// one it may have. One rename: at no moment, and after no power cut, is there half a catalog, or none where
/// there was one.
void install_catalog(const std::filesystem::path& whole, const CityPaths& paths);

}  // namespace citysplat::tiling
