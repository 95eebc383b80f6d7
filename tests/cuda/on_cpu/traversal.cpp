#include "cuda/on_cpu/traversal.hpp"

#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>

namespace citysplat::on_cpu {

namespace {

using gpu::DiscBox;

DiscBox around(const DiscBox& a, const DiscBox& b) {
    return {std::min(a.min_x, b.min_x), std::min(a.min_y, b.min_y), std::min(a.min_z, b.min_z),
            std::max(a.max_x, b.max_x), std::max(a.max_y, b.max_y), std::max(a.max_z, b.max_z)};
}

/// Distance at which the ray enters the box, infinity when it does not within its limits.
float entry(const DiscBox& box, Vec3f origin, Vec3f direction, float t_min, float t_max) {
    const float low[] = {box.min_x, box.min_y, box.min_z}, high[] = {box.max_x, box.max_y, box.max_z};
    const float o[] = {origin.x, origin.y, origin.z}, d[] = {direction.x, direction.y, direction.z};
    for (int k = 0; k < 3; ++k) {
        if (d[k] == 0) {
            if (o[k] < low[k] || o[k] > high[k]) return INFINITY;
            continue;
        }
        const float a = (low[k] - o[k]) / d[k], b = (high[k] - o[k]) / d[k];
        t_min = std::max(t_min, std::min(a, b));
        t_max = std::min(t_max, std::max(a, b));
    }
    return t_min <= t_max ? t_min : INFINITY;
}

void ask(RayState& ray, unsigned primitive) {
    ray.primitive = primitive;
    ray.asked = true;
    const Program program = kIntersectionPrograms[ray.hit_record];
    program();
    if (current().random() < current().manners.ask_again) program();
    ray.asked = false;
}

void trace_tile(const BoxTree& tree, Vec3f origin, RayState& ray) {
    const auto nodes = tree.nodes();
    const auto enter = [&](const DiscBox& box) {
        return entry(box, origin, ray.direction, ray.t_min, ray.t_max);
    };
    std::vector<std::uint32_t> stack{0};
    while (!stack.empty()) {
        const std::uint32_t index = stack.back();
        stack.pop_back();
        const BoxTree::Node& node = nodes[index];
        if (enter(node.box) == INFINITY) continue;
        for (std::uint32_t i = 0; i < node.count; ++i) {
            const std::uint32_t primitive = tree.primitive(node.first + i);
            if (enter(tree.boxes()[primitive]) != INFINITY) ask(ray, primitive);
        }
        if (node.count > 0) continue;
        std::uint32_t near = index + 1, far = node.first;
        const bool swap = current().manners.nearest_first ? enter(nodes[far].box) < enter(nodes[near].box)
                                                          : current().random() < 0.5;
        if (swap) std::swap(near, far);
        stack.push_back(far);
        stack.push_back(near);
    }
}

struct Registry {
    std::mutex mutex;
    std::map<std::uint64_t, std::shared_ptr<const Accel>> accels;
};
Registry& registry() {
    static Registry r;
    return r;
}

}  // namespace

BoxTree::BoxTree(std::span<const DiscBox> boxes) : boxes_(boxes.begin(), boxes.end()), order_(boxes.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    build(0, static_cast<std::uint32_t>(order_.size()));
}

void BoxTree::build(std::uint32_t first, std::uint32_t count) {
    const auto begin = order_.begin() + first, end = begin + count;
    DiscBox box = boxes_[*begin];
    for (auto i = begin; i != end; ++i) box = around(box, boxes_[*i]);
    const std::size_t self = nodes_.size();
    nodes_.push_back({box, first, count});
    if (count <= 4) return;
    const float size[] = {box.max_x - box.min_x, box.max_y - box.min_y, box.max_z - box.min_z};
    const auto axis = std::max_element(size, size + 3) - size;
    const auto middle = [&](std::uint32_t i) {
        const DiscBox& b = boxes_[i];
        return axis == 0 ? b.min_x + b.max_x : axis == 1 ? b.min_y + b.max_y : b.min_z + b.max_z;
    };
    const std::uint32_t half = count / 2;
    std::nth_element(begin, begin + half, end, [&](auto a, auto b) { return middle(a) < middle(b); });
    build(first, half);
    nodes_[self].first = static_cast<std::uint32_t>(nodes_.size());
    nodes_[self].count = 0;
    build(first + half, count - half);
}

bool RayState::report(float t, unsigned kind) {
    if (!std::isfinite(t)) throw std::logic_error("a hit at no distance was reported");
    if (kind > 127) throw std::logic_error("hit kinds above 127 are reserved");
    if (t < t_min || t > t_max) return false;
    t_max = t;
    return true;
}

RayState& Thread::in_intersection() {
    if (!ray || !ray->asked) throw std::logic_error("called outside an intersection program");
    return *ray;
}

double Thread::random() { return rng::uniform(rng::key(manners.seed, launch_index), draws++); }

Thread& current() {
    static thread_local Thread thread;
    return thread;
}

std::shared_ptr<const Accel> share_accel(std::uint64_t traversable) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto found = r.accels.find(traversable);
    if (found == r.accels.end()) throw std::logic_error("no acceleration structure at this address");
    return found->second;
}
const Accel& accel_at(std::uint64_t traversable) { return *share_accel(traversable); }
void put_accel(std::byte* memory, std::shared_ptr<const Accel> accel) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.accels[reinterpret_cast<std::uint64_t>(memory)] = std::move(accel);
}
void forget_accel(std::byte* memory) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.accels.erase(reinterpret_cast<std::uint64_t>(memory));
}

void trace(std::uint64_t scene, RayState& ray) {
    if (!ray.only_intersection) throw std::logic_error("there are no other programs than intersection");
    Thread& thread = current();
    thread.ray = &ray;
    const auto& instances = accel_at(scene).instances;
    const std::size_t n = instances.size();
    const auto start = static_cast<std::size_t>(thread.random() * static_cast<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
        const gpu::TileInstance& tile = instances[(start + i) % n];
        const float* m = tile.scene_from_tile;
        if (m[0] != 1 || m[5] != 1 || m[10] != 1 || m[1] != 0 || m[2] != 0 || m[4] != 0 || m[6] != 0 ||
            m[8] != 0 || m[9] != 0)
            throw std::logic_error("tiles are only ever moved");
        if (!(tile.visibility_mask & ray.mask)) continue;
        ray.instance_id = tile.slot;
        const Vec3f origin{ray.origin.x - m[3], ray.origin.y - m[7], ray.origin.z - m[11]};
        trace_tile(*accel_at(tile.traversable).discs, origin, ray);
    }
    thread.ray = nullptr;
}

}  // namespace citysplat::on_cpu
