#include "tiling/store/catalog.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tiling/store/catalog_schema.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace citysplat::tiling {

namespace {

/// Longer than any path that a system takes.
constexpr std::size_t kLongestPath = std::size_t{1} << 16;

std::int32_t index_of(const Statement& s, int column, std::int64_t most = INT32_MAX) {
    return static_cast<std::int32_t>(s.integer(column, -most, most));
}

constexpr const char* kSourceColumns =
    "id, identity, content, content_bytes, object, object_bytes, format, crs, read, kept, not_finite,"
    " out_of_range, withheld, duplicates, no_return, damaged, without_sensor, min_x, min_y, max_x, max_y";

SourceRow source_row(const Statement& s) {
    SourceRow row{.id = s.integer(0),
                  .identity = s.hash(1),
                  .content = s.hash(2),
                  .content_bytes = s.count(3),
                  .object = s.hash(4),
                  .object_bytes = s.count(5),
                  .format = s.text(6),
                  .crs = s.text(7),
                  .counts = {},
                  .bounds = {s.integer(17), s.integer(18), s.integer(19), s.integer(20)}};
    row.counts = {.read = s.count(8),
                  .kept = s.count(9),
                  .not_finite = s.count(10),
                  .out_of_range = s.count(11),
                  .withheld = s.count(12),
                  .duplicates = s.count(13),
                  .no_return = s.count(14),
                  .damaged = s.count(15),
                  .without_sensor = s.count(16)};
    return row;
}

constexpr const char* kProductColumns =
    "p.id, p.key, p.core, p.level, p.x, p.y, p.object, p.object_bytes, p.points, p.splats, p.halo_steps, "
    "p.digest,"
    " p.min_x, p.min_y, p.min_z, p.max_x, p.max_y, p.max_z, p.removed, p.kind";

/// The same of a catalog that may be of an earlier version.
std::string product_columns(std::int64_t version) {
    std::string columns = kProductColumns;
    if (version < 6) columns.replace(columns.find("p.kind"), std::string::npos, "0");
    if (version < 3) columns.replace(columns.find("p.removed"), std::strlen("p.removed"), "0");
    return columns;
}

ProductRow product_row(const Statement& s) {
    ProductRow row{.id = s.integer(0),
                   .key = s.hash(1),
                   .core = s.hash(2),
                   .tile = {static_cast<std::int32_t>(s.integer(3, 0, TileGrid::kMaxLevel)), index_of(s, 4),
                            index_of(s, 5)},
                   .object = {},
                   .object_bytes = s.count(7),
                   .points = s.count(8),
                   .splats = s.count(9),
                   .halo_steps = s.integer(10, 0, kMostHaloSteps),
                   .digest = s.hash(11),
                   .box = {},
                   .removed = 0};
    if (!s.is_null(6)) row.object = s.hash(6);
    for (int i = 0; i < 6; ++i) row.box[static_cast<std::size_t>(i)] = s.real(12 + i);
    row.removed = s.count(18);
    row.tile.kind = static_cast<ProductKind>(s.integer(19, 0, kProductKinds.words.size() - 1));
    return row;
}

constexpr const char* kReachColumns = "reach_min_x, reach_min_y, reach_max_x, reach_max_y";
constexpr const char* kGenerationColumns =
    "id, created_s, note, tile_size_m, parameters_key, parameters, classes, crs, radius_m, error_m, density,"
    " samples, now_radius_m, now_error_m, now_density, now_samples, points, tiles, splats, digest, record,"
    " step_rad, now_step_rad, findings, findings_of, tags, revision, triangles, products";

/// The same of a catalog that may be of an earlier version.
std::string select_generation(std::int64_t version) {
    std::string columns = kGenerationColumns;
    if (version < 6) columns.replace(columns.find("triangles,"), std::string::npos, "0, ''");
    if (version < 5) columns.replace(columns.find("tags,"), std::strlen("tags, revision"), "'', 0");
    if (version < 4)
        columns.replace(columns.find("findings,"), std::strlen("findings, findings_of"), "'', 0");
    if (version < 2)
        columns.replace(columns.find("step_rad,"), std::strlen("step_rad, now_step_rad"), "0.0, 0.0");
    return "SELECT " + columns + " FROM generation";
}

GenerationRow generation_row(const Statement& s) {
    return {.id = s.integer(0, 1, kMostGenerations),
            .created_s = s.integer(1),
            .note = s.text(2),
            .tile_size_m = s.integer(3, 1, TileGrid::kMaxTileSize_m),
            .parameters_key = s.hash(4),
            .parameters = s.text(5),
            .classes = s.text(6),
            .crs = s.text(7),
            .calibration = {s.real(8), s.real(9), s.real(10), s.count(11), s.real(21)},
            .measured = {s.real(12), s.real(13), s.real(14), s.count(15), s.real(22)},
            .points = s.count(16),
            .tiles = s.count(17),
            .splats = s.count(18),
            .digest = s.hash(19),
            .findings = s.text(23),
            .findings_of = s.integer(24, 0, kMostGenerations),
            .tags = s.text(25),
            .revision = s.integer(26),
            .record = s.hash(20),
            .triangles = s.count(27),
            .products = s.text(28)};
}

bool same_input(const InputRow& a, const InputRow& b) {
    return a.path == b.path && a.trajectory == b.trajectory && a.reading == b.reading &&
           a.source == b.source && a.stamp == b.stamp && a.trajectory_stamp == b.trajectory_stamp;
}

}  // namespace

PointCounts& PointCounts::operator+=(const PointCounts& o) {
    read += o.read;
    kept += o.kept;
    not_finite += o.not_finite;
    out_of_range += o.out_of_range;
    withheld += o.withheld;
    duplicates += o.duplicates;
    no_return += o.no_return;
    damaged += o.damaged;
    without_sensor += o.without_sensor;
    return *this;
}

void Catalog::create(const std::filesystem::path& path) {
    Database db(path, Database::Access::create);
    db.execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA");
    create_schema(db);
}

Catalog::Catalog(const std::filesystem::path& path, Database::Access access) : db_(path, access) {
    db_.execute("PRAGMA synchronous=EXTRA; PRAGMA foreign_keys=OFF; PRAGMA cell_size_check=ON");
    version_ = check_schema(db_);
}

Catalog Catalog::open_to_read(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) require_city(CityPaths(path.parent_path()));
    try {
        return Catalog(path, Database::Access::read_only);
    } catch (const IoError&) {
        // A killed builder may have left a journal that only a writer can roll back.
        return Catalog(path, Database::Access::read_write);
    }
}

Catalog Catalog::open_to_write(const std::filesystem::path& path) {
    Catalog catalog(path, Database::Access::read_write);
    if (catalog.version_ < kCatalogVersion) migrate_schema(catalog.db_, catalog.version_);
    catalog.version_ = kCatalogVersion;
    // A builder that was killed right after its commit has not made the end of its journal durable; a power
    // cut would bring the journal back and undo what the caller now takes for granted.
    sync_directory(directory_of(path));
    return catalog;
}

std::optional<GenerationRow> Catalog::latest() {
    Statement s(db_, select_generation(version_) + " ORDER BY id DESC LIMIT 1");
    if (!s.step()) return std::nullopt;
    return generation_row(s);
}

std::optional<GenerationRow> Catalog::generation(std::int64_t id) {
    Statement s(db_, select_generation(version_) + " WHERE id=?1");
    if (!s.bind(1, id).step()) return std::nullopt;
    return generation_row(s);
}

std::vector<GenerationRow> Catalog::history() {
    Statement s(db_, select_generation(version_) + " ORDER BY id");
    std::vector<GenerationRow> rows;
    while (s.step()) rows.push_back(generation_row(s));
    return rows;
}

std::vector<InputRow> Catalog::inputs(std::int64_t generation) {
    Statement s(
        db_,
        "SELECT path, trajectory, reading, size, mtime_ns, inode, t_size, t_mtime_ns, t_inode, source FROM "
        "input WHERE first<=?1 AND (last IS NULL OR last>=?1) ORDER BY path");
    s.bind(1, generation);
    std::vector<InputRow> rows;
    while (s.step()) {
        rows.push_back({.path = s.text(0),
                        .trajectory = s.text(1),
                        .reading = s.text(2),
                        .stamp = {s.count(3), s.integer(4), s.bits(5)},
                        .trajectory_stamp = {s.count(6), s.integer(7), s.bits(8)},
                        .source = s.integer(9)});
        if (rows.back().path.size() > kLongestPath || rows.back().trajectory.size() > kLongestPath)
            throw CorruptionError(db_.path().string() + " is damaged: the path of an input has " +
                                  std::to_string(rows.back().path.size()) +
                                  " bytes; citysplat repair rebuilds the catalog from the objects");
    }
    return rows;
}

std::vector<ProductRow> Catalog::tiles(std::int64_t generation) {
    Statement s(db_, "SELECT " + product_columns(version_) +
                         " FROM tile t JOIN product p ON p.id=t.product WHERE t.first<=?1 AND (t.last IS "
                         "NULL OR t.last>=?1)");
    s.bind(1, generation);
    std::vector<ProductRow> rows;
    while (s.step()) rows.push_back(product_row(s));
    sort_by_tile(rows);
    return rows;
}

std::vector<SourceRow> Catalog::sources() {
    Statement s(db_, std::string("SELECT ") + kSourceColumns + " FROM source ORDER BY id");
    std::vector<SourceRow> rows;
    while (s.step()) rows.push_back(source_row(s));
    return rows;
}

SourceRow Catalog::source(std::int64_t id) {
    Statement s(db_, std::string("SELECT ") + kSourceColumns + " FROM source WHERE id=?1");
    if (!s.bind(1, id).step())
        throw CorruptionError(db_.path().string() + ": source " + std::to_string(id) +
                              " is missing; citysplat repair rebuilds the catalog");
    return source_row(s);
}

std::optional<SourceRow> Catalog::find_source(const Hash128& identity) {
    Statement s(db_, std::string("SELECT ") + kSourceColumns + " FROM source WHERE identity=?1");
    if (!s.bind(1, identity).step()) return std::nullopt;
    return source_row(s);
}

bool Catalog::has_content(std::uint64_t bytes) {
    Statement s(db_, "SELECT 1 FROM source WHERE content_bytes=?1 LIMIT 1");
    return s.bind(1, bytes).step();
}

std::vector<SegmentRow> Catalog::segments(std::int64_t source) {
    const std::string reach = version_ < 3 ? "0, 0, -1, -1" : kReachColumns;
    Statement s(db_, "SELECT x, y, points, accepted, at, bytes, hash, " + reach +
                         " FROM segment WHERE source=?1 ORDER BY x, y");
    s.bind(1, source);
    const auto sector = [&s](int column) { return index_of(s, column, kMostSector); };
    std::vector<SegmentRow> rows;
    while (s.step())
        rows.push_back({.sector_x = sector(0),
                        .sector_y = sector(1),
                        .points = s.count(2),
                        .accepted = s.count(3),
                        .offset = s.count(4),
                        .bytes = s.count(5),
                        .hash = s.hash(6),
                        .reach = {sector(7), sector(8), sector(9), sector(10)}});
    return rows;
}

std::vector<ProductRow> Catalog::products() {
    Statement s(db_, "SELECT " + product_columns(version_) + " FROM product p ORDER BY p.id");
    std::vector<ProductRow> rows;
    while (s.step()) rows.push_back(product_row(s));
    return rows;
}

std::vector<std::string> Catalog::misplaced_rows() {
    static constexpr const char* kInterval =
        "(typeof(first)<>'integer' OR typeof(last) NOT IN ('integer','null') OR first<1"
        " OR first>(SELECT coalesce(max(id),0) FROM generation) OR last<first"
        " OR last>=(SELECT coalesce(max(id),0) FROM generation))";
    const std::array<std::pair<std::string, const char*>, 6> rules{{
        {std::string("tile WHERE ") + kInterval, "rows of tiles belong to no possible generations"},
        {std::string("input WHERE ") + kInterval, "rows of inputs belong to no possible generations"},
        {"tile WHERE product NOT IN (SELECT id FROM product)",
         "rows of tiles name products that are not there"},
        {"input WHERE source NOT IN (SELECT id FROM source)",
         "rows of inputs name sources that are not there"},
        {"segment WHERE source NOT IN (SELECT id FROM source)",
         "rows of segments name sources that are not there"},
        {"(SELECT 1 FROM tile WHERE last IS NULL GROUP BY product HAVING count(*)>1)",
         "tiles stand in the latest generation twice"},
    }};
    std::vector<std::string> problems;
    for (const auto& [rows, what] : rules)
        if (const std::int64_t count = db_.integer("SELECT count(*) FROM " + rows))
            problems.push_back(std::to_string(count) + " " + what +
                               "; citysplat repair rebuilds the catalog from the objects");
    return problems;
}

std::vector<std::int64_t> Catalog::add_sources(std::span<const CitySource> sources) {
    Transaction transaction(db_, Transaction::Kind::write);
    std::vector<std::int64_t> ids;
    for (const CitySource& source : sources) ids.push_back(insert(source));
    transaction.commit();
    return ids;
}

std::int64_t Catalog::insert(const CitySource& source) {
    const SourceRow& row = source.row;
    const auto old = find_source(row.identity);
    if (old) {
        Statement(db_, "DELETE FROM segment WHERE source=?1").bind(1, old->id).run();
        Statement(db_, "DELETE FROM source WHERE id=?1").bind(1, old->id).run();
    }
    Statement s(db_,
                std::string("INSERT INTO source(") + kSourceColumns +
                    ") VALUES(?21,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)");
    const PointCounts& c = row.counts;
    s.bind(1, row.identity).bind(2, row.content).bind(3, row.content_bytes);
    s.bind(4, row.object).bind(5, row.object_bytes).bind(6, row.format).bind(7, row.crs);
    s.bind(8, c.read).bind(9, c.kept).bind(10, c.not_finite).bind(11, c.out_of_range).bind(12, c.withheld);
    s.bind(13, c.duplicates).bind(14, c.no_return).bind(15, c.damaged).bind(16, c.without_sensor);
    s.bind(17, row.bounds.min_x).bind(18, row.bounds.min_y);
    s.bind(19, row.bounds.max_x).bind(20, row.bounds.max_y);
    if (old)
        s.bind(21, old->id);
    else
        s.bind_null(21);
    s.run();
    const std::int64_t id = db_.last_id();
    Statement add(db_, std::string("INSERT INTO segment(source, x, y, points, accepted, at, bytes, hash, ") +
                           kReachColumns + ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    for (const SegmentRow& g : source.segments)
        add.bind(1, id)
            .bind(2, g.sector_x)
            .bind(3, g.sector_y)
            .bind(4, g.points)
            .bind(5, g.accepted)
            .bind(6, g.offset)
            .bind(7, g.bytes)
            .bind(8, g.hash)
            .bind(9, g.reach.min_x)
            .bind(10, g.reach.min_y)
            .bind(11, g.reach.max_x)
            .bind(12, g.reach.max_y)
            .run();
    return id;
}

void Catalog::add_products(std::span<ProductRow> products) {
    Transaction transaction(db_, Transaction::Kind::write);
    Statement s(db_,
                "INSERT INTO product(key, core, level, x, y, object, object_bytes, points, splats, "
                "halo_steps, digest,"
                " min_x, min_y, min_z, max_x, max_y, max_z, removed, kind)"
                " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)"
                " ON CONFLICT(key) DO UPDATE SET core=excluded.core, level=excluded.level, x=excluded.x,"
                " y=excluded.y, object=excluded.object, object_bytes=excluded.object_bytes,"
                " points=excluded.points, splats=excluded.splats, halo_steps=excluded.halo_steps,"
                " digest=excluded.digest, min_x=excluded.min_x, min_y=excluded.min_y, min_z=excluded.min_z,"
                " max_x=excluded.max_x, max_y=excluded.max_y, max_z=excluded.max_z,"
                " removed=excluded.removed, kind=excluded.kind RETURNING id");
    for (ProductRow& p : products) {
        s.bind(1, p.key).bind(2, p.core).bind(3, p.tile.level).bind(4, p.tile.ix).bind(5, p.tile.iy);
        if (p.object)
            s.bind(6, *p.object);
        else
            s.bind_null(6);
        s.bind(7, p.object_bytes).bind(8, p.points).bind(9, p.splats).bind(10, p.halo_steps);
        s.bind(11, p.digest);
        for (int i = 0; i < 6; ++i) s.bind(12 + i, p.box[static_cast<std::size_t>(i)]);
        s.bind(18, p.removed).bind(19, static_cast<std::int64_t>(p.tile.kind));
        if (s.step()) p.id = s.integer(0);
        s.run();
    }
    transaction.commit();
}

void Catalog::publish(const GenerationRow& g, std::span<const InputRow> inputs,
                      std::span<const ProductRow> tiles) {
    Transaction transaction(db_, Transaction::Kind::write);
    const std::int64_t parent = db_.integer("SELECT max(id) FROM generation");
    if (g.id <= parent || g.id > kMostGenerations)
        throw CorruptionError(db_.path().string() + ": generation " + std::to_string(g.id) +
                              " cannot follow generation " + std::to_string(parent));

    std::set<std::int64_t> wanted;
    for (const ProductRow& tile : tiles) wanted.insert(tile.id);
    std::vector<std::int64_t> closed;
    for (Statement open(db_, "SELECT id, product FROM tile WHERE last IS NULL"); open.step();)
        if (wanted.erase(open.integer(1)) == 0) closed.push_back(open.integer(0));
    Statement close_tile(db_, "UPDATE tile SET last=?1 WHERE id=?2");
    for (const std::int64_t id : closed) close_tile.bind(1, g.id - 1).bind(2, id).run();
    Statement add_tile(db_, "INSERT INTO tile(first, last, product) VALUES(?1, NULL, ?2)");
    for (const std::int64_t product : wanted) add_tile.bind(1, g.id).bind(2, product).run();

    std::map<std::string, const InputRow*> by_path;
    for (const InputRow& input : inputs) by_path[input.path] = &input;
    for (const InputRow& old : this->inputs(parent)) {
        const auto found = by_path.find(old.path);
        if (found != by_path.end() && same_input(*found->second, old))
            by_path.erase(found);
        else
            Statement(db_, "UPDATE input SET last=?1 WHERE path=?2 AND last IS NULL")
                .bind(1, g.id - 1)
                .bind(2, old.path)
                .run();
    }
    Statement add_input(
        db_,
        "INSERT INTO input(first, last, path, trajectory, reading, size, mtime_ns, inode, t_size,"
        " t_mtime_ns, t_inode, source) VALUES(?1,NULL,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)");
    for (const auto& [path, i] : by_path) {
        add_input.bind(1, g.id).bind(2, path).bind(3, i->trajectory).bind(4, i->reading);
        add_input.bind(5, i->stamp.size).bind(6, i->stamp.mtime_ns).bind(7, i->stamp.inode_and_ctime);
        add_input.bind(8, i->trajectory_stamp.size).bind(9, i->trajectory_stamp.mtime_ns);
        add_input.bind(10, i->trajectory_stamp.inode_and_ctime).bind(11, i->source).run();
    }

    Statement add(
        db_,
        std::string("INSERT INTO generation(") + kGenerationColumns +
            ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,"
            "?25,?26,?27,?28,?29)");
    const Calibration &c = g.calibration, &m = g.measured;
    add.bind(1, g.id).bind(2, g.created_s).bind(3, g.note).bind(4, g.tile_size_m);
    add.bind(5, g.parameters_key).bind(6, g.parameters).bind(7, g.classes).bind(8, g.crs);
    add.bind(9, c.mean_radius_m).bind(10, c.mean_error_m).bind(11, c.mean_density).bind(12, c.samples);
    add.bind(13, m.mean_radius_m).bind(14, m.mean_error_m).bind(15, m.mean_density).bind(16, m.samples);
    add.bind(17, g.points).bind(18, g.tiles).bind(19, g.splats).bind(20, g.digest);
    add.bind(21, g.record).bind(22, c.angular_step_rad).bind(23, m.angular_step_rad);
    add.bind(24, g.findings).bind(25, g.findings_of).bind(26, g.tags).bind(27, g.revision);
    add.bind(28, g.triangles).bind(29, g.products).run();
    transaction.commit();
}

void Catalog::revise(const GenerationRow& generation, std::span<const InputRow> inputs) {
    Transaction transaction(db_, Transaction::Kind::write);
    Statement row(db_, "UPDATE generation SET record=?1, tags=?2, revision=?3 WHERE id=?4");
    row.bind(1, generation.record).bind(2, generation.tags).bind(3, generation.revision);
    row.bind(4, generation.id).run();
    // A row may stand for earlier generations too, which keep the stamps they were published with.
    const std::string which =
        " WHERE path=?7 AND source=?8 AND last IS NULL"
        " AND (size, mtime_ns, inode, t_size, t_mtime_ns, t_inode)<>(?1, ?2, ?3, ?4, ?5, ?6)";
    Statement keep(
        db_,
        "INSERT INTO input(first, last, path, trajectory, reading, size, mtime_ns, inode, t_size,"
        " t_mtime_ns, t_inode, source) SELECT first, ?9-1, path, trajectory, reading, size, mtime_ns,"
        " inode, t_size, t_mtime_ns, t_inode, source FROM input" +
            which + " AND first<?9");
    Statement set(db_,
                  "UPDATE input SET first=?9, size=?1, mtime_ns=?2, inode=?3, t_size=?4, t_mtime_ns=?5,"
                  " t_inode=?6" +
                      which);
    for (const InputRow& i : inputs)
        for (Statement* s : {&keep, &set}) {
            s->bind(1, i.stamp.size).bind(2, i.stamp.mtime_ns).bind(3, i.stamp.inode_and_ctime);
            s->bind(4, i.trajectory_stamp.size).bind(5, i.trajectory_stamp.mtime_ns);
            s->bind(6, i.trajectory_stamp.inode_and_ctime).bind(7, i.path).bind(8, i.source);
            s->bind(9, generation.id).run();
        }
    transaction.commit();
}

void Catalog::forget(std::span<const std::int64_t> generations, const std::set<Hash128>& kept_sources) {
    Transaction transaction(db_, Transaction::Kind::write);
    Statement s(db_, "DELETE FROM generation WHERE id=?1");
    for (const std::int64_t id : generations) s.bind(1, id).run();
    const char* kUnused =
        " WHERE NOT EXISTS(SELECT 1 FROM generation g WHERE g.id>=first AND (last IS NULL OR g.id<=last))";
    db_.execute(std::string("DELETE FROM tile") + kUnused);
    db_.execute(std::string("DELETE FROM input") + kUnused);
    db_.execute("DELETE FROM product WHERE id NOT IN (SELECT product FROM tile)");
    std::vector<std::int64_t> unused;
    for (Statement source(db_, "SELECT id, identity FROM source WHERE id NOT IN (SELECT source FROM input)");
         source.step();)
        if (!kept_sources.contains(source.hash(1))) unused.push_back(source.integer(0));
    Statement remove(db_, "DELETE FROM source WHERE id=?1");
    for (const std::int64_t id : unused) remove.bind(1, id).run();
    db_.execute("DELETE FROM segment WHERE source NOT IN (SELECT id FROM source)");
    transaction.commit();
}

void install_catalog(const std::filesystem::path& whole, const CityPaths& paths) {
    if (::rename(whole.c_str(), paths.catalog().c_str()) != 0)
        throw_errno("cannot rename to", paths.catalog());
    sync_directory(paths.root());
}

}  // namespace citysplat::tiling
