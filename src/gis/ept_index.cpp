#include "gis/ept_index.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "io/crs/known_crs.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace citysplat::gis {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kIndexVersion = 1;
constexpr const char* kWayOut = "; export into a new directory";

void write_text(const fs::path& path, const std::string& text) {
    OutputFile file(path);
    file.writer().text(text);
    file.commit(true);
}

std::optional<Hash128> hash_from(const std::string& hex) {
    unsigned long long high = 0, low = 0;
    if (hex.size() != 32 || std::sscanf(hex.c_str(), "%16llx%16llx", &high, &low) != 2) return std::nullopt;
    const Hash128 hash{high, low};
    return hash.hex() == hex ? std::optional(hash) : std::nullopt;
}

EptCounts read_counts(const fs::path& path) {
    EptCounts counts;
    if (!fs::exists(path)) return counts;
    const json root = json::parse(read_text_file(path), nullptr, false);
    if (!root.is_object()) throw InputError(path.string() + " is damaged" + kWayOut);
    for (const auto& [name, count] : root.items()) {
        EptKey key;
        long long x = 0, y = 0, z = 0;
        if (std::sscanf(name.c_str(), "%d-%lld-%lld-%lld", &key.depth, &x, &y, &z) != 4 ||
            !count.is_number_integer())
            throw InputError(path.string() + ": \"" + name + "\" is no node with a number of points" +
                             kWayOut);
        key.x = x, key.y = y, key.z = z;
        counts[key] = static_cast<std::uint64_t>(count.get<std::int64_t>());
    }
    return counts;
}

void write_counts(const fs::path& path, const EptCounts& counts) {
    std::string text = "{";
    for (const auto& [key, count] : counts)
        text += (text.size() > 1 ? ",\n\"" : "\n\"") + key.text() +
                "\": " + std::to_string(static_cast<std::int64_t>(count));
    write_text(path, text + "\n}\n");
}

json dimension(const char* name, const char* type, int bytes) {
    return {{"name", name}, {"type", type}, {"size", bytes}};
}

json place_dimension(const char* name, double offset_m, double min, double max) {
    json d = dimension(name, "signed", 4);
    d.update({{"scale", kLatticeStep_m}, {"offset", offset_m}, {"minimum", min}, {"maximum", max}});
    return d;
}

}  // namespace

std::optional<EptIndex> EptIndex::read(const fs::path& folder) {
    const fs::path path = folder / kEptIndexFile;
    if (!fs::exists(path)) return std::nullopt;
    const json root = json::parse(read_text_file(path), nullptr, false);
    try {
        if (root.at("version") != kIndexVersion) return std::nullopt;
        EptIndex index;
        index.tile_size_m = root.at("tile_size_m");
        index.finished = root.value("finished", true);
        index.cube = {root.at("min_m").at(0), root.at("min_m").at(1), root.at("min_m").at(2),
                      root.at("leaf_depth")};
        if (index.cube.leaf_depth < 1 || index.cube.leaf_depth > kEptMostLeafDepth)
            throw InputError(path.string() + ": no cube has leaves at the depth " +
                             std::to_string(index.cube.leaf_depth) + kWayOut);
        for (const auto& [name, tile] : root.at("tiles").items()) {
            TileKey key;
            const auto hash = hash_from(tile.at("digest").get<std::string>());
            if (std::sscanf(name.c_str(), "%d/%d/%d", &key.level, &key.ix, &key.iy) != 3 || !hash)
                throw InputError(path.string() + ": \"" + name + "\" is no tile" + kWayOut);
            index.tiles[key].digest = *hash;
            for (const json& sector : tile.at("sectors"))
                index.tiles[key].sectors.push_back({sector.at(0), sector.at(1)});
        }
        return index;
    } catch (const json::exception&) {
        throw InputError(path.string() + " is damaged" + kWayOut);
    }
}

void EptIndex::write(const fs::path& folder) const {
    json listed = json::object();
    for (const auto& [key, tile] : tiles) {
        json sectors = json::array();
        for (const tiling::Sector& s : tile.sectors) sectors.push_back({s.x, s.y});
        listed[key.text()] = {{"digest", tile.digest.hex()}, {"sectors", sectors}};
    }
    json root{{"version", kIndexVersion},
              {"tile_size_m", tile_size_m},
              {"min_m", {cube.min_x_m, cube.min_y_m, cube.min_z_m}},
              {"leaf_depth", cube.leaf_depth},
              {"tiles", listed}};
    if (!finished) root["finished"] = false;
    write_text(folder / kEptIndexFile, root.dump(1) + "\n");
}

fs::path EptHierarchy::file_of(const EptKey& key) const {
    return folder_ / "ept-hierarchy" / (key.text() + ".json");
}

EptCounts EptHierarchy::read_top() const { return read_counts(file_of({})); }
EptCounts EptHierarchy::read_below(const EptKey& leaf) const { return read_counts(file_of(leaf)); }
void EptHierarchy::write_top(const EptCounts& counts) const { write_counts(file_of({}), counts); }

void EptHierarchy::write_below(const EptKey& leaf, const EptCounts& counts) const {
    if (counts.size() > 1)
        write_counts(file_of(leaf), counts);
    else
        fs::remove(file_of(leaf));
}

void write_ept_json(const fs::path& folder, const EptCube& cube, const EptSummary& s) {
    const std::array<std::int64_t, 3> min{cube.min_x_m, cube.min_y_m, cube.min_z_m};
    const std::int64_t half = cube.side_m() / 2;
    json srs = json::object();
    if (const auto known = s.crs.empty() ? std::nullopt : io::known_crs(s.crs)) {
        if (known->epsg > 0) srs = {{"authority", "EPSG"}, {"horizontal", std::to_string(known->epsg)}};
        if (const auto wkt = io::wkt_of_known_crs(s.crs)) srs["wkt"] = *wkt;
    }
    const auto offset = [&](std::size_t a) { return static_cast<double>(min[a] + half); };
    json schema = {place_dimension("X", offset(0), s.box[0], s.box[3]),
                   place_dimension("Y", offset(1), s.box[1], s.box[4]),
                   place_dimension("Z", offset(2), s.box[2], s.box[5]),
                   dimension("Intensity", "unsigned", 2),
                   dimension("Classification", "unsigned", 1),
                   dimension("NormalX", "float", 4),
                   dimension("NormalY", "float", 4),
                   dimension("NormalZ", "float", 4),
                   dimension("Radius", "float", 4),
                   dimension("Label", "unsigned", 2)};
    const json bounds{min[0], min[1], min[2], min[0] + 2 * half, min[1] + 2 * half, min[2] + 2 * half};
    create_directories_durably(folder / "ept-sources");
    write_text(folder / "ept-sources" / "manifest.json", "[]\n");
    write_text(folder / "ept.json", json{{"version", "1.1.0"},
                                         {"dataType", "zstandard"},
                                         {"hierarchyType", "json"},
                                         {"span", 1 << kEptCellsPerSide_bits},
                                         {"points", s.points},
                                         {"bounds", bounds},
                                         {"boundsConforming", s.box},
                                         {"schema", schema},
                                         {"srs", srs}}
                                            .dump(1) +
                                        "\n");
}

}  // namespace citysplat::gis
