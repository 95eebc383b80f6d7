#include "tiling/store/generation_record.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace citysplat::tiling {

namespace {

template <class Means, class Each>
void means_fields(Means& c, const Each& each) {
    each("mean_radius_m", c.mean_radius_m), each("mean_error_m", c.mean_error_m);
    each("mean_density", c.mean_density), each("samples", c.samples);
}

/// One list of fields for both directions, and for comparing.
template <class Row, class Each>
void generation_fields(Row& g, std::uint32_t version, const Each& each) {
    each("id", g.id), each("created_s", g.created_s), each("note", g.note);
    each("tile_size_m", g.tile_size_m), each("parameters_key", g.parameters_key);
    each("parameters", g.parameters), each("classes", g.classes), each("crs", g.crs);
    means_fields(g.calibration, each), means_fields(g.measured, each);
    each("points", g.points), each("tiles", g.tiles), each("splats", g.splats), each("digest", g.digest);
    if (version < 2) return;
    each("angular_step_rad", g.calibration.angular_step_rad);
    each("angular_step_rad as measured", g.measured.angular_step_rad);
    if (version < 4) return;
    each("findings", g.findings), each("findings_of", g.findings_of);
    if (version < 5) return;
    each("tags", g.tags), each("revision", g.revision);
    if (version < 6) return;
    each("triangles", g.triangles), each("products", g.products);
}

/// True when a record of this version says all of it.
bool fits(const GenerationRecord& record, std::uint32_t version) {
    const GenerationRow& g = record.generation;
    return (version >= 2 || (g.calibration.angular_step_rad == 0 && g.measured.angular_step_rad == 0)) &&
           (version >= 3 || std::all_of(record.tiles.begin(), record.tiles.end(),
                                        [](const ProductRow& tile) { return tile.removed == 0; })) &&
           (version >= 4 || (g.findings.empty() && g.findings_of == 0)) &&
           (version >= 5 || (g.tags.empty() && g.revision == 0)) &&
           (version >= 6 || (g.triangles == 0 && g.products.empty()));
}

template <class Row, class Each>
void input_fields(Row& i, const Each& each) {
    each(i.row.path), each(i.row.trajectory), each(i.row.reading), each(i.row.stamp);
    each(i.row.trajectory_stamp), each(i.identity);
}

void put(RecordWriter& out, const GenerationRecord& record, std::uint32_t version) {
    generation_fields(record.generation, version, [&out](const char*, const auto& value) { out.put(value); });
    out.put(static_cast<std::uint64_t>(record.inputs.size()));
    for (const auto& input : record.inputs)
        input_fields(input, [&out](const auto& value) { out.put(value); });
    put_products(out, record.tiles, version);
}

RecordWriter encode(const GenerationRecord& record, std::uint32_t version = kRecordVersion) {
    RecordWriter out(ObjectKind::generation, version);
    put(out, record, version);
    return out;
}

/// The name that write_record() gives it, or gave it in an earlier version.
Hash128 name_of(const GenerationRecord& record, std::uint32_t version = kRecordVersion) {
    return hash_bytes(encode(record, version).bytes());
}

bool has_name(const GenerationRecord& record, const Hash128& name) {
    for (std::uint32_t version = kRecordVersion; version >= 1; --version)
        if (fits(record, version) && name_of(record, version) == name) return true;
    return false;
}

/// Name and bytes of every field.
std::vector<std::pair<std::string, std::vector<std::byte>>> fields_of(const GenerationRow& generation) {
    std::vector<std::pair<std::string, std::vector<std::byte>>> fields;
    generation_fields(generation, kRecordVersion, [&fields](const char* name, const auto& value) {
        RecordWriter out(ObjectKind::generation, kRecordVersion);
        out.put(value);
        fields.emplace_back(name, std::vector(out.bytes().begin(), out.bytes().end()));
    });
    return fields;
}

bool same_product(const ProductRow& a, const ProductRow& b) {
    return a.key == b.key && a.core == b.core && a.tile == b.tile && a.object == b.object &&
           a.object_bytes == b.object_bytes && a.points == b.points && a.splats == b.splats &&
           a.halo_steps == b.halo_steps && a.digest == b.digest && a.box == b.box && a.removed == b.removed;
}

bool same_input(const GenerationRecord::Input& a, const GenerationRecord::Input& b) {
    return a.row.path == b.row.path && a.row.trajectory == b.row.trajectory &&
           a.row.reading == b.row.reading && a.row.stamp == b.row.stamp &&
           a.row.trajectory_stamp == b.row.trajectory_stamp && a.identity == b.identity;
}

/// Whether the catalog would give it back.
bool is_possible(const ProductRow& p) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return p.tile.level >= 0 && p.tile.level <= TileGrid::kMaxLevel && p.halo_steps >= 0 &&
           p.halo_steps <= kMostHaloSteps && p.object_bytes <= kMost && p.points <= kMost &&
           p.splats <= kMost && p.removed <= kMost &&
           std::all_of(p.box.begin(), p.box.end(), [](double m) { return std::isfinite(m); });
}

bool is_possible(const Calibration& c) {
    return std::isfinite(c.mean_radius_m) && std::isfinite(c.mean_error_m) && std::isfinite(c.mean_density) &&
           std::isfinite(c.angular_step_rad);
}

void sort(GenerationRecord& record) {
    std::sort(record.inputs.begin(), record.inputs.end(),
              [](const auto& a, const auto& b) { return a.row.path < b.row.path; });
    sort_by_tile(record.tiles);
}

/// Above those of all generations, so that of two that say they have one name the later one is known.
std::int64_t next_revision(Catalog& catalog) {
    std::int64_t highest = 0;
    for (const GenerationRow& row : catalog.history()) highest = std::max(highest, row.revision);
    return highest + 1;
}

}  // namespace

void put_draft(RecordWriter& out, const GenerationRecord& record) { put(out, record, kRecordVersion); }

GenerationRecord get_draft(RecordReader& in, std::uint32_t version) {
    GenerationRecord record;
    generation_fields(record.generation, version, [&in](const char*, auto& value) { in.get(value); });
    record.inputs.resize(in.count(sizeof(Hash128)));
    for (auto& input : record.inputs) input_fields(input, [&in](auto& value) { in.get(value); });
    record.tiles = get_products(in, version);
    return record;
}

GenerationRecord make_record(Catalog& catalog, const GenerationRow& generation,
                             std::span<const InputRow> inputs, std::span<const ProductRow> tiles) {
    GenerationRecord record{generation, {}, {tiles.begin(), tiles.end()}};
    for (const InputRow& input : inputs)
        record.inputs.push_back({input, catalog.source(input.source).identity});
    sort(record);
    return record;
}

GenerationRecord record_of(Catalog& catalog, const GenerationRow& generation) {
    return make_record(catalog, generation, catalog.inputs(generation.id), catalog.tiles(generation.id));
}

Hash128 write_record(ObjectStore& store, const GenerationRecord& record) {
    return encode(record).write(store);
}

std::optional<GenerationRecord> read_record(const ObjectStore& store, const Hash128& object) {
    if (store.kind_of(object) != ObjectKind::generation) return std::nullopt;
    RecordReader in(store, object, "generation record", kRecordVersion);
    GenerationRecord record = get_draft(in, in.version());
    record.generation.record = object;
    sort(record);  // earlier versions wrote tiles in the order in which they were made
    return record;
}

std::optional<std::string> difference(const GenerationRecord& catalog, const GenerationRecord& published) {
    std::optional<std::string> found;
    const auto fields = fields_of(catalog.generation), others = fields_of(published.generation);
    for (std::size_t i = 0; i < fields.size() && !found; ++i)
        if (fields[i] != others[i]) found = "its " + fields[i].first + " is not what was published";
    const auto compare = [&found](const auto& rows, const auto& truth, const auto& same, const auto& text) {
        if (found) return;
        if (rows.size() != truth.size()) {
            found = "it has " + std::to_string(rows.size()) + " " + text(nullptr) + ", " +
                    std::to_string(truth.size()) + " were published";
            return;
        }
        for (std::size_t i = 0; i < rows.size() && !found; ++i)
            if (!same(rows[i], truth[i])) found = text(&rows[i]) + " is not what was published";
    };
    compare(catalog.inputs, published.inputs, same_input, [](const GenerationRecord::Input* input) {
        return input ? "the row of input " + input->row.path : std::string("inputs");
    });
    compare(catalog.tiles, published.tiles, same_product, [](const ProductRow* tile) {
        return tile ? "the row of tile " + tile->tile.text() : std::string("tiles");
    });
    return found;
}

void add_up(GenerationRow& generation, std::span<const ProductRow> tiles) {
    generation.tiles = tiles.size();
    generation.splats = generation.triangles = 0;
    generation.digest = {};
    for (const ProductRow& tile : tiles) {
        (has_triangles(tile.tile.kind) ? generation.triangles : generation.splats) += tile.splats;
        generation.digest += tile.digest;
    }
}

std::optional<std::string> why_not_published(const GenerationRecord& record) {
    const GenerationRow& g = record.generation;
    GenerationRow sum;
    add_up(sum, record.tiles);
    if (g.id < 1 || g.created_s <= 0) return "it was never published";
    if (g.id > kMostGenerations || g.findings_of < 0 || g.findings_of > kMostGenerations ||
        g.tile_size_m < 1 || g.tile_size_m > TileGrid::kMaxTileSize_m || !is_possible(g.calibration) ||
        !is_possible(g.measured) ||
        !std::all_of(record.tiles.begin(), record.tiles.end(),
                     [](const ProductRow& tile) { return is_possible(tile); }))
        return "it holds numbers that no generation has";
    if (g.tiles != sum.tiles || g.splats != sum.splats || g.triangles != sum.triangles ||
        g.digest != sum.digest)
        return "its tiles do not add up to it";
    return std::nullopt;
}

void check_rows(Catalog& catalog, const ObjectStore& store, const GenerationRow& generation) {
    GenerationRecord rows;
    {
        // All of one moment: a touched input gives the latest generation other rows and another record.
        const Transaction reading = catalog.reading();
        rows = record_of(catalog, catalog.generation(generation.id).value_or(generation));
    }
    const Hash128 name = rows.generation.record;
    if (has_name(rows, name)) return;
    const std::string what = "generation " + std::to_string(generation.id) + " in " +
                             store.paths().catalog().string() + " is damaged: ";
    const char* way_out = "; citysplat repair rebuilds the catalog from the objects";
    const auto record = read_record(store, name);
    if (!record) throw CorruptionError(what + "its rows are not what was published" + way_out);
    if (const auto found = difference(rows, *record)) throw CorruptionError(what + *found + way_out);
}

std::int64_t publish_generation(Catalog& catalog, ObjectStore& store, GenerationRow generation,
                                std::span<const InputRow> inputs, std::span<const ProductRow> tiles) {
    const auto latest = catalog.latest();
    generation.id = latest ? latest->id + 1 : 1;
    generation.tags.clear();  // a name is that of one generation
    generation.revision = 0;
    generation.record = write_record(store, make_record(catalog, generation, inputs, tiles));
    store.flush();
    catalog.publish(generation, inputs, tiles);
    return generation.id;
}

void refresh_generation(Catalog& catalog, ObjectStore& store, const GenerationRow& generation,
                        std::span<const InputRow> inputs) {
    GenerationRecord record = make_record(catalog, generation, inputs, catalog.tiles(generation.id));
    const bool same = name_of(record) == generation.record;
    if (same && store.intact(generation.record)) return;
    if (!same) record.generation.revision = next_revision(catalog);
    record.generation.record = write_record(store, record);
    store.flush();
    if (!same) catalog.revise(record.generation, inputs);
}

void set_tags(Catalog& catalog, ObjectStore& store, GenerationRow generation, const std::string& tags) {
    generation.tags = tags;
    generation.revision = next_revision(catalog);
    generation.record = write_record(store, record_of(catalog, generation));
    store.flush();
    catalog.revise(generation, {});
}

}  // namespace citysplat::tiling
