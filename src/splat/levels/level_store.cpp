#include "splat/levels/level_store.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"

#include <cstring>
#include <tuple>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace citysplat::splat {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[8] = {'C', 'S', 'L', 'E', 'V', 'E', 'L', '1'};

struct FileHeader {
    char magic[8];
    std::int32_t level, x, y, z;
    std::uint32_t children, pieces;
    std::uint64_t discs;
};
static_assert(sizeof(FileHeader) == 40 && std::is_trivially_copyable_v<Piece> && sizeof(Piece) == 36);

/// Behind everything else: hash of all bytes before it, as text.
constexpr std::size_t kSealBytes = 32;

std::string seal_of(std::span<const std::byte> bytes) { return hash_bytes(bytes).hex(); }

std::optional<LevelCube> parse(std::span<const std::byte> file, const CubeId& id) {
    FileHeader header;
    if (file.size() < sizeof header + kSealBytes) return std::nullopt;
    const auto body = file.first(file.size() - kSealBytes);
    const std::string seal = seal_of(body);
    if (std::memcmp(seal.data(), file.data() + body.size(), kSealBytes) != 0) return std::nullopt;
    std::memcpy(&header, body.data(), sizeof header);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
        CubeId{header.level, header.x, header.y, header.z} != id)
        return std::nullopt;
    constexpr std::uint64_t kMostDiscs = std::uint64_t{1} << 32;
    if (header.discs > kMostDiscs) return std::nullopt;
    const std::size_t pieces = header.pieces * sizeof(Piece), columns = SplatTile::body_bytes(header.discs);
    if (body.size() != sizeof header + pieces + columns) return std::nullopt;
    LevelCube cube;
    cube.id = id;
    cube.children = static_cast<std::uint8_t>(header.children);
    cube.pieces.resize(header.pieces);
    std::memcpy(cube.pieces.data(), body.data() + sizeof header, pieces);
    const LatticePoint corner = id.corner();
    cube.discs =
        SplatTile(TileFrame{corner.x >> kLatticeBits, corner.y >> kLatticeBits, corner.z >> kLatticeBits},
                  header.discs);
    std::memcpy(cube.discs.mutable_bytes().data(), body.data() + sizeof header + pieces, columns);
    return cube;
}

std::vector<std::byte> file_of(const LevelCube& cube) {
    FileHeader header{{},
                      cube.id.level,
                      cube.id.x,
                      cube.id.y,
                      cube.id.z,
                      cube.children,
                      static_cast<std::uint32_t>(cube.pieces.size()),
                      cube.discs.size()};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    std::vector<std::byte> file;
    const auto append = [&](std::span<const std::byte> bytes) {
        file.insert(file.end(), bytes.begin(), bytes.end());
    };
    append(std::as_bytes(std::span(&header, 1)));
    append(std::as_bytes(std::span(cube.pieces)));
    append(cube.discs.bytes());
    const std::string seal = seal_of(file);
    append(std::as_bytes(std::span(seal)));
    return file;
}

struct StoredFile {
    fs::file_time_type used;
    fs::path path;
    std::uint64_t bytes;
};

std::vector<StoredFile> files_in(const fs::path& directory) {
    std::vector<StoredFile> files;
    std::error_code ec;
    for (fs::recursive_directory_iterator at(directory, ec), end; !ec && at != end; at.increment(ec)) {
        std::error_code one;
        if (!at->is_regular_file(one) || one) continue;
        const auto used = at->last_write_time(one);
        const std::uint64_t bytes = one ? 0 : at->file_size(one);
        if (!one) files.push_back({used, at->path(), bytes});
    }
    return files;
}

}  // namespace

LevelStore::LevelStore(fs::path directory, std::uint64_t most_bytes)
    : directory_(std::move(directory)), most_bytes_(most_bytes) {
    for (const StoredFile& file : files_in(directory_)) used_bytes_ += file.bytes;
    if (used_bytes_ > most_bytes_) make_room();
}

fs::path LevelStore::path_of(const std::string& key, const CubeId& id) const {
    return directory_ / key / id.name();
}

std::optional<LevelCube> LevelStore::find(const std::string& key, const CubeId& id) {
    const fs::path path = path_of(key, id);
    std::error_code ec;
    if (!fs::is_regular_file(path, ec)) return std::nullopt;
    std::optional<LevelCube> cube;
    try {
        cube = parse(read_file(path), id);
    } catch (const Error&) {
        return std::nullopt;
    }
    if (cube)
        fs::last_write_time(path, fs::file_time_type::clock::now(), ec);
    else
        fs::remove(path, ec);
    return cube;
}

void LevelStore::keep(const std::string& key, const LevelCube& cube) {
    const std::vector<std::byte> file = file_of(cube);
    if (file.size() > most_bytes_) return;
    const std::lock_guard lock(mutex_);
    const fs::path path = path_of(key, cube.id);
    std::error_code ec;
    fs::create_directories(path.parent_path(), ec);
    const fs::path partial =
        path.parent_path() / (".part-" + std::to_string(::getpid()) + "-" + std::to_string(written_++));
    try {
        File out(partial, File::Mode::truncate);
        out.append(file);
        out.close();
        fs::rename(partial, path);
    } catch (const std::exception&) {
        fs::remove(partial, ec);
        return;
    }
    used_bytes_ += file.size();
    if (used_bytes_ > most_bytes_) make_room();
}

std::uint64_t LevelStore::used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
}

/// Down to nine tenths, so that not every file that is kept looks at all the others.
void LevelStore::make_room() {
    std::vector<StoredFile> files = files_in(directory_);
    std::sort(files.begin(), files.end(), [](const StoredFile& a, const StoredFile& b) {
        return std::tie(a.used, a.path) < std::tie(b.used, b.path);
    });
    used_bytes_ = 0;
    for (const StoredFile& file : files) used_bytes_ += file.bytes;
    for (const StoredFile& file : files) {
        if (used_bytes_ <= most_bytes_ / 10 * 9) break;
        std::error_code ec;
        if (fs::remove(file.path, ec) && !ec) used_bytes_ -= file.bytes;
    }
}

}  // namespace citysplat::splat
