#include "cuda/tile_loader.hpp"

#include "core/error.hpp"
#include "cuda/scene_layout.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace citysplat::gpu {

namespace {

/// Empties the load queue when a call is left, also by exception: only then may its buffers go. Declare it
/// after them.
struct Drain {
    Device& device;
    ~Drain() { device.drain(Queue::load); }
};

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAccelAlignment - 1) / kAccelAlignment * kAccelAlignment;
}

template <class T>
T* at(DeviceAddress address) {
    return reinterpret_cast<T*>(address);
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

SplatColumns columns_at(DeviceAddress address, const SplatTile& tile) {
    const auto place = [&](const auto& column) {
        const auto* first = reinterpret_cast<const std::byte*>(column.data());
        using Value = typename std::remove_reference_t<decltype(column)>::element_type;
        return at<Value>(address + static_cast<DeviceAddress>(first - tile.bytes().data()));
    };
    return {place(tile.x()),         place(tile.y()),         place(tile.z()),
            place(tile.normal()),    place(tile.radius()),    place(tile.label()),
            place(tile.intensity()), place(tile.incidence()), tile.frame().origin()};
}

void refuse_bad_splats(const SplatTile& tile) {
    const auto radius = tile.radius();
    const auto bad = std::find(radius.begin(), radius.end(), std::uint16_t{0});
    if (bad != radius.end())
        throw CorruptionError("splat " + std::to_string(bad - radius.begin()) + " has no radius");
}

}  // namespace

const trace::TraceDisc* LoadedTile::discs() const {
    return is_mesh ? nullptr : at<const trace::TraceDisc>(splats.address());
}
const trace::TraceTriangle* LoadedTile::triangles() const {
    return is_mesh ? at<const trace::TraceTriangle>(splats.address()) : nullptr;
}
const trace::SplatFacts* LoadedTile::facts() const {
    const std::size_t each = is_mesh ? sizeof(trace::TraceTriangle) : sizeof(trace::TraceDisc);
    return at<const trace::SplatFacts>(splats.address() + count * each);
}
const PartView* LoadedParts::views() const { return at<const PartView>(tables.address()); }
const SceneView* LoadedScene::scenes() const { return at<const SceneView>(tables.address()); }
const trace::TileView* LoadedScene::tiles() const {
    return at<const trace::TileView>(tables.address() + scene_count * sizeof(SceneView));
}

TileLoader::TileLoader(Device& device, DeviceMemory& memory, std::size_t staging_bytes)
    : device_(device),
      memory_(memory),
      staging_{PinnedBuffer(device, staging_bytes), PinnedBuffer(device, staging_bytes)},
      answer_(device, sizeof(std::uint64_t)) {}

LoadedTile TileLoader::load(const SplatTile& tile) {
    refuse_bad_splats(tile);
    LoadedTile loaded;
    loaded.frame = tile.frame();
    loaded.count = static_cast<std::uint32_t>(tile.size());
    if (tile.empty()) return loaded;

    const std::lock_guard lock(mutex_);
    loaded.splats = memory_.allocate(MemoryUse::splats,
                                     tile.size() * (sizeof(trace::TraceDisc) + sizeof(trace::SplatFacts)));
    const DeviceBuffer columns = memory_.allocate(MemoryUse::transient, tile.bytes().size());
    const DeviceBuffer boxes = memory_.allocate(MemoryUse::transient, tile.size() * sizeof(DiscBox));
    const Drain drain{device_};
    upload(columns.address(), tile.bytes());
    device_.decode(Queue::load, columns_at(columns.address(), tile), loaded.count,
                   {const_cast<trace::TraceDisc*>(loaded.discs()),
                    const_cast<trace::SplatFacts*>(loaded.facts()), at<DiscBox>(boxes.address())});
    build_accel(loaded, boxes.address());
    return loaded;
}

LoadedTile TileLoader::load(const trace::MeshPrimitives& mesh) {
    LoadedTile loaded;
    loaded.is_mesh = true;
    loaded.count = static_cast<std::uint32_t>(mesh.triangles.size());
    std::vector<DiscBox> around;
    for (const trace::TraceTriangle& t : mesh.triangles) {
        const auto low = [](float a, float b, float c) { return std::min({a, b, c}) - kBoxSlack_m; };
        const auto high = [](float a, float b, float c) { return std::max({a, b, c}) + kBoxSlack_m; };
        around.push_back({low(t.a.x, t.b.x, t.c.x), low(t.a.y, t.b.y, t.c.y), low(t.a.z, t.b.z, t.c.z),
                          high(t.a.x, t.b.x, t.c.x), high(t.a.y, t.b.y, t.c.y), high(t.a.z, t.b.z, t.c.z)});
    }
    const std::lock_guard lock(mutex_);
    const auto triangles = bytes_of(mesh.triangles), facts = bytes_of(mesh.facts),
               box_bytes = bytes_of(around);
    loaded.splats = memory_.allocate(MemoryUse::splats, triangles.size() + facts.size());
    const DeviceBuffer boxes = memory_.allocate(MemoryUse::transient, box_bytes.size());
    const Drain drain{device_};
    upload(loaded.splats.address(), triangles);
    upload(loaded.splats.address() + triangles.size(), facts);
    upload(boxes.address(), box_bytes);
    build_accel(loaded, boxes.address());
    return loaded;
}

DeviceBuffer TileLoader::build_shape(const LoadedTile& tile, std::uint64_t& traversable) {
    TileInstance instance{};
    instance.scene_from_tile[0] = instance.scene_from_tile[5] = instance.scene_from_tile[10] = 1;
    instance.visibility_mask = 255;
    instance.traversable = tile.traversable;
    const std::lock_guard lock(mutex_);
    return build_scene({&instance, 1}, traversable);
}

LoadedParts TileLoader::load_parts(std::span<const PartView> parts) {
    LoadedParts loaded;
    if (parts.empty()) return loaded;
    loaded.count = static_cast<std::uint32_t>(parts.size());
    std::vector<PartView> views(parts.begin(), parts.end());
    std::vector<trace::PoseKey> keys;
    std::vector<float> times_s;
    for (const PartView& part : parts) {
        const std::uint32_t segments = part.motion.segments;
        keys.insert(keys.end(), part.motion.keys, part.motion.keys + segments + 1);
        if (segments > 0)
            times_s.insert(times_s.end(), part.motion.times_s, part.motion.times_s + segments + 1);
    }
    const auto view_bytes = bytes_of(views), key_bytes = bytes_of(keys), time_bytes = bytes_of(times_s);
    const std::lock_guard lock(mutex_);
    loaded.tables =
        memory_.allocate(MemoryUse::scene, view_bytes.size() + key_bytes.size() + time_bytes.size());
    const DeviceAddress keys_at = loaded.tables.address() + view_bytes.size();
    const DeviceAddress times_at = keys_at + key_bytes.size();
    const auto* key = at<const trace::PoseKey>(keys_at);
    const auto* time_s = at<const float>(times_at);
    for (PartView& view : views) {
        view.motion.keys = key;
        key += view.motion.segments + 1;
        view.motion.times_s = time_s;
        if (view.motion.segments > 0) time_s += view.motion.segments + 1;
    }
    const Drain drain{device_};
    upload(loaded.tables.address(), view_bytes);
    upload(keys_at, key_bytes);
    upload(times_at, time_bytes);
    finish();
    return loaded;
}

void TileLoader::build_accel(LoadedTile& tile, DeviceAddress boxes) {
    const AccelSizes sizes = device_.accel_sizes(AccelKind::discs, tile.count);
    DeviceBuffer output = memory_.allocate(MemoryUse::transient, sizes.output_bytes);
    const DeviceBuffer temp =
        memory_.allocate(MemoryUse::transient, aligned(sizes.temp_bytes) + sizeof(std::uint64_t));
    const DeviceAddress compacted_size = temp.address() + aligned(sizes.temp_bytes);
    const Drain drain{device_};
    tile.traversable = device_.build(Queue::load, {AccelKind::discs, boxes, tile.count, output.address(),
                                                   temp.address(), sizes, compacted_size});
    device_.download(Queue::load, answer_.bytes(), compacted_size);
    finish();

    std::uint64_t bytes;
    std::memcpy(&bytes, answer_.bytes().data(), sizeof bytes);
    if (bytes >= sizes.output_bytes) {
        tile.accel = std::move(output);
        tile.accel.becomes(MemoryUse::accel);
        return;
    }
    tile.accel = memory_.allocate(MemoryUse::accel, bytes);
    tile.traversable = device_.compact(Queue::load, tile.traversable, tile.accel.address(), bytes);
    finish();
}

std::size_t TileLoader::resident_bytes(std::uint32_t splats) const {
    if (splats == 0) return 0;
    return splats * (sizeof(trace::TraceDisc) + sizeof(trace::SplatFacts)) +
           device_.accel_sizes(AccelKind::discs, splats).output_bytes;
}

LoadedScene TileLoader::bind(std::span<const LoadedTile* const> tiles) {
    LoadedScene scene;
    if (tiles.empty()) return scene;
    const std::lock_guard lock(mutex_);
    const SceneLayout layout = lay_out_scenes(tiles);
    scene.scene_count = static_cast<std::uint32_t>(layout.scenes.size());
    std::vector<SceneView> views;
    for (const SceneLayout::Scene& part : layout.scenes) {
        SceneView view{0, part.anchor};
        scene.accels.push_back(build_scene(part.instances, view.traversable));
        views.push_back(view);
    }
    const auto view_bytes = bytes_of(views), tile_bytes = bytes_of(layout.tiles);
    scene.tables = memory_.allocate(MemoryUse::scene, view_bytes.size() + tile_bytes.size());
    const Drain drain{device_};
    upload(scene.tables.address(), view_bytes);
    upload(scene.tables.address() + view_bytes.size(), tile_bytes);
    finish();
    return scene;
}

DeviceBuffer TileLoader::build_scene(std::span<const TileInstance> instances, std::uint64_t& traversable) {
    const auto count = static_cast<std::uint32_t>(instances.size());
    const AccelSizes sizes = device_.accel_sizes(AccelKind::scene, count);
    DeviceBuffer output = memory_.allocate(MemoryUse::scene, sizes.output_bytes);
    const DeviceBuffer input = memory_.allocate(MemoryUse::transient, instances.size_bytes());
    const DeviceBuffer temp = memory_.allocate(MemoryUse::transient, sizes.temp_bytes);
    const Drain drain{device_};
    upload(input.address(), std::as_bytes(instances));
    traversable = device_.build(
        Queue::load, {AccelKind::scene, input.address(), count, output.address(), temp.address(), sizes, 0});
    finish();
    return output;
}

void TileLoader::upload(DeviceAddress to, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        PinnedBuffer& staging = staging_[turn_];
        const Mark mark{Queue::load, turn_};
        const std::size_t n = std::min(bytes.size(), staging.bytes().size());
        device_.wait(mark);
        std::memcpy(staging.bytes().data(), bytes.data(), n);
        device_.upload(Queue::load, to, staging.first(n));
        device_.record(mark);
        turn_ ^= 1;
        bytes = bytes.subspan(n);
        to += n;
    }
}

void TileLoader::finish() {
    // Marks are places in one queue: the newer one is behind both staging buffers' copies.
    const Mark mark{Queue::load, turn_};
    device_.record(mark);
    device_.wait(mark);
}

}  // namespace citysplat::gpu
