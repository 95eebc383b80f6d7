#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "io/bytes_le.hpp"
#include "io/mesh/mesh_builder.hpp"
#include "io/mesh/mesh_formats.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>

/// glTF 2.0 in one file (GLB): a chunk of JSON and a chunk of bytes. Read are the triangles of the scene with
/// the transforms of their nodes, and names and base colours of their materials.
namespace citysplat::io {

namespace {

using nlohmann::json;

/// A value of the JSON chunk that knows where it is.
class Item {
  public:
    Item(const json& value, std::string where) : value_(&value), where_(std::move(where)) {}

    [[noreturn]] void fail(const std::string& what) const { throw InputError(where_ + ": " + what); }
    const std::string& where() const { return where_; }

    bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
    Item at(const char* key) const {
        if (!has(key)) fail(std::string("has no \"") + key + "\"");
        return {(*value_)[key], where_ + "." + key};
    }
    std::size_t size() const {
        if (!value_->is_array()) fail("expected a list");
        return value_->size();
    }
    Item item(std::size_t i) const {
        if (i >= size())
            fail("has no number " + std::to_string(i) + "; the list has " + std::to_string(size()));
        return {(*value_)[i], where_ + "[" + std::to_string(i) + "]"};
    }
    std::uint64_t whole(std::uint64_t most) const {
        if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most)
            fail("expected a whole number up to " + std::to_string(most));
        return value_->get<std::uint64_t>();
    }
    std::uint64_t whole(const char* key, std::uint64_t most, std::uint64_t fallback) const {
        return has(key) ? at(key).whole(most) : fallback;
    }
    double number() const {
        if (!value_->is_number()) fail("expected a number");
        return value_->get<double>();
    }
    template <std::size_t N>
    std::array<double, N> numbers(const char* key, const std::array<double, N>& fallback) const {
        if (!has(key)) return fallback;
        const Item list = at(key);
        if (list.size() != N) list.fail("expected " + std::to_string(N) + " numbers");
        std::array<double, N> values;
        for (std::size_t i = 0; i < N; ++i) values[i] = list.item(i).number();
        return values;
    }
    std::string text() const {
        if (!value_->is_string()) fail("expected a text");
        return value_->get<std::string>();
    }
    const json& value() const { return *value_; }

  private:
    const json* value_;
    std::string where_;
};

/// Rotation, scale and shear, then translation; column by column as in the file.
struct Affine {
    Vec3d x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1}, t{0, 0, 0};

    Vec3d linear(Vec3d v) const { return v.x * x + v.y * y + v.z * z; }
    Vec3d apply(Vec3d v) const { return linear(v) + t; }
    Affine operator*(const Affine& b) const { return {linear(b.x), linear(b.y), linear(b.z), apply(b.t)}; }
};

Affine transform_of(const Item& node) {
    if (node.has("matrix")) {
        const auto m = node.numbers<16>("matrix", {});
        if (m[3] != 0 || m[7] != 0 || m[11] != 0 || m[15] != 1)
            node.at("matrix").fail("the last row must be 0 0 0 1");
        return {{m[0], m[1], m[2]}, {m[4], m[5], m[6]}, {m[8], m[9], m[10]}, {m[12], m[13], m[14]}};
    }
    const auto t = node.numbers<3>("translation", {0, 0, 0});
    const auto q = node.numbers<4>("rotation", {0, 0, 0, 1});
    const auto s = node.numbers<3>("scale", {1, 1, 1});
    const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(std::fabs(n - 1) < 0.02)) node.at("rotation").fail("expected a quaternion of length 1");
    const double x = q[0] / n, y = q[1] / n, z = q[2] / n, w = q[3] / n;
    return {s[0] * Vec3d{1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)},
            s[1] * Vec3d{2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)},
            s[2] * Vec3d{2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)},
            {t[0], t[1], t[2]}};
}

enum class Component : std::uint32_t { u8 = 5121, u16 = 5123, u32 = 5125, f32 = 5126 };

/// `count` elements of the binary chunk, `stride` bytes apart, checked to be inside.
struct Elements {
    const std::byte* first;
    std::uint64_t count, stride;
    Component component;

    const std::byte* at(std::uint64_t i) const { return first + i * stride; }
};

class GlbReader {
  public:
    GlbReader(std::string_view bytes, const std::string& name) : name_(name), mesh_(name) {
        const std::string_view text = find_chunks(bytes);
        try {
            json_ = json::parse(text.begin(), text.end());
        } catch (const json::exception& e) {
            throw InputError(name + ": the JSON chunk: " + printable(e.what()));
        }
        if (!json_.is_object()) throw InputError(name + ": the JSON chunk is not an object");
    }

    MeshFile read() {
        const Item root(json_, name_);
        check_extensions(root);
        if (root.has("animations")) mesh_.note("animations are left out: the model stands as at rest");
        if (!root.has("nodes")) root.fail("has no nodes");
        const Item nodes = root.at("nodes");
        seen_.assign(nodes.size(), false);
        if (root.has("scenes") && root.at("scenes").size() > 0) {
            const Item scene = root.at("scenes").item(root.whole("scene", UINT32_MAX, 0));
            if (scene.has("nodes")) visit_all(scene.at("nodes"), nodes);
        } else {
            visit_roots(nodes);
        }
        return std::move(mesh_).finish();
    }

  private:
    /// The text of the JSON chunk; the binary one is kept.
    std::string_view find_chunks(std::string_view bytes) {
        const auto word = [&](std::size_t at) {
            return load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(bytes.data()) + at);
        };
        constexpr std::uint32_t kMagic = 0x46546c67, kJson = 0x4e4f534a, kBinary = 0x004e4942;
        if (bytes.size() < 20 || word(0) != kMagic)
            throw InputError(name_ + ": byte 0: not a GLB file: it does not begin with \"glTF\"");
        if (word(4) != 2)
            throw InputError(name_ + ": byte 4: version " + std::to_string(word(4)) + " of glTF; expected 2");
        if (word(8) != bytes.size())
            throw InputError(name_ + ": byte 8: the file claims " + std::to_string(word(8)) +
                             " bytes and has " + std::to_string(bytes.size()));
        std::string_view text;
        std::size_t number = 0;
        for (std::size_t at = 12; at < bytes.size(); ++number) {
            if (!fits(at, 8, bytes.size()) || !fits(at + 8, word(at), bytes.size()))
                throw InputError(name_ + ": byte " + std::to_string(at) +
                                 ": the chunk goes on behind the end of the file");
            const std::string_view content = bytes.substr(at + 8, word(at));
            if ((number == 0) != (word(at + 4) == kJson))
                throw InputError(name_ + ": byte " + std::to_string(at) +
                                 ": the first chunk, and no other, must be JSON");
            if (number == 0) text = content;
            if (number == 1 && word(at + 4) == kBinary) binary_ = content;
            at += 8 + content.size();
        }
        return text;
    }

    /// Extensions that change what triangles there are, and where, are refused by name.
    void check_extensions(const Item& root) const {
        if (!root.has("extensionsRequired")) return;
        const Item list = root.at("extensionsRequired");
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string extension = list.item(i).text();
            const bool harmless = extension.starts_with("KHR_materials_") ||
                                  extension.starts_with("KHR_texture_") ||
                                  extension.starts_with("EXT_texture_") || extension == "KHR_lights_punctual";
            if (!harmless)
                list.item(i).fail("the extension " + printable(extension.substr(0, 80)) +
                                  " is not supported; export the model without it");
        }
    }

    void visit_roots(const Item& nodes) {
        std::vector<bool> child(nodes.size(), false);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Item node = nodes.item(i);
            if (!node.has("children")) continue;
            const Item children = node.at("children");
            for (std::size_t k = 0; k < children.size(); ++k) {
                const std::uint64_t which = children.item(k).whole(UINT32_MAX);
                if (which < child.size()) child[which] = true;
            }
        }
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (!child[i]) visit(i, nodes, {});
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (!seen_[i]) nodes.item(i).fail("the node is below itself");
    }

    struct Open {
        std::uint64_t node;
        Affine world_from_parent;
    };

    void visit_all(const Item& list, const Item& nodes) {
        for (std::size_t i = 0; i < list.size(); ++i) visit(list.item(i).whole(UINT32_MAX), nodes, {});
    }

    /// A node and all below it, without recursion: a file may be as deep as it likes.
    void visit(std::uint64_t first, const Item& nodes, const Affine& above) {
        std::vector<Open> open{{first, above}};
        while (!open.empty()) {
            const Open now = open.back();
            open.pop_back();
            const Item node = nodes.item(static_cast<std::size_t>(now.node));
            if (seen_[now.node]) node.fail("the node is below two others, or below itself");
            seen_[now.node] = true;
            if (node.has("skin")) node.at("skin").fail("skins are not supported; export a rigid model");
            if (node.has("extensions") && node.at("extensions").has("EXT_mesh_gpu_instancing"))
                node.fail("the extension EXT_mesh_gpu_instancing is not supported");
            const Affine world = now.world_from_parent * transform_of(node);
            if (node.has("mesh")) take_mesh(node, world);
            if (!node.has("children")) continue;
            const Item children = node.at("children");
            for (std::size_t k = children.size(); k-- > 0;)
                open.push_back({children.item(k).whole(UINT32_MAX), world});
        }
    }

    void take_mesh(const Item& node, const Affine& world) {
        const Item root(json_, name_);
        const Item mesh = root.at("meshes").item(node.at("mesh").whole(UINT32_MAX));
        const Item primitives = mesh.at("primitives");
        for (std::size_t i = 0; i < primitives.size(); ++i) take_primitive(primitives.item(i), world);
    }

    void take_primitive(const Item& primitive, const Affine& world) {
        enum Mode { kTriangles = 4, kStrip = 5, kFan = 6 };
        const std::uint64_t mode = primitive.whole("mode", 6, kTriangles);
        if (mode < kTriangles) return mesh_.note("points and lines are left out");
        if (primitive.has("targets")) primitive.fail("morph targets are not supported");
        const Item attributes = primitive.at("attributes");
        const Elements places = elements(attributes.at("POSITION"), "VEC3");
        if (places.component != Component::f32) attributes.at("POSITION").fail("positions must be floats");
        const std::uint16_t material = material_of(primitive);
        const auto base = static_cast<std::uint32_t>(mesh_.vertices());
        const std::string where = attributes.where() + ".POSITION";
        MeshPlace place{where, "vertex", 0};
        for (; place.number < places.count; ++place.number) {
            const std::byte* at = places.at(place.number);
            const Vec3d v{load_le<float>(at), load_le<float>(at + 4), load_le<float>(at + 8)};
            mesh_.vertex(from_y_up(world.apply(v)), place);
        }
        std::optional<Elements> indices;
        if (primitive.has("indices")) {
            indices = elements(primitive.at("indices"), "SCALAR");
            if (indices->component == Component::f32)
                primitive.at("indices").fail("indices must be whole numbers");
        }
        const std::string face = primitive.where();
        const std::uint64_t corners = indices ? indices->count : places.count;
        if (mode == kTriangles ? corners % 3 != 0 : corners < 3)
            primitive.fail(std::to_string(corners) + " corners do not make triangles");
        place = {face, "corner", 0};
        const auto corner = [&](std::uint64_t i) {
            const std::uint64_t index = indices ? index_at(*indices, i) : i;
            if (index >= places.count)
                throw InputError(face + ": corner " + std::to_string(i) + ": vertex " +
                                 std::to_string(index) + " of " + std::to_string(places.count));
            return base + static_cast<std::uint32_t>(index);
        };
        const std::uint64_t triangles = mode == kTriangles ? corners / 3 : corners - 2;
        for (std::uint64_t i = 0; i < triangles; ++i) {
            // Of a strip every other triangle turns the other way.
            const std::uint64_t odd = mode == kStrip ? i % 2 : 0;
            const std::uint64_t first = mode == kTriangles ? 3 * i : i + (mode == kFan ? 1 : 0);
            const std::uint32_t all[3]{corner(mode == kFan ? 0 : first),
                                       corner(mode == kFan ? first : first + 1 + odd),
                                       corner(mode == kFan ? first + 1 : first + 2 - odd)};
            place.number = first;
            mesh_.triangle(all, material, place);
        }
    }

    static std::uint64_t index_at(const Elements& indices, std::uint64_t i) {
        const std::byte* at = indices.at(i);
        switch (indices.component) {
            case Component::u8:
                return load_le<std::uint8_t>(at);
            case Component::u16:
                return load_le<std::uint16_t>(at);
            default:
                return load_le<std::uint32_t>(at);
        }
    }

    std::uint16_t material_of(const Item& primitive) {
        const MeshPlace place{primitive.where(), "material", 0};
        if (!primitive.has("material")) return mesh_.material("", std::nullopt, place);
        const std::uint64_t number = primitive.at("material").whole(UINT32_MAX);
        const Item material = Item(json_, name_).at("materials").item(number);
        std::optional<double> reflectance;
        if (material.has("pbrMetallicRoughness")) {
            const Item look = material.at("pbrMetallicRoughness");
            const auto c = look.numbers<4>("baseColorFactor", {1, 1, 1, 1});
            for (const double v : c)
                if (!(v >= 0 && v <= 1)) look.at("baseColorFactor").fail("expected shares of 1");
            reflectance = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
            if (look.has("baseColorTexture") && !look.has("baseColorFactor")) reflectance.reset();
        }
        const std::string name = material.has("name") ? material.at("name").text() : "";
        return mesh_.material(name.empty() ? "material " + std::to_string(number) : name, reflectance, place);
    }

    /// An accessor, as far as its bytes.
    Elements elements(const Item& reference, const char* type) const {
        const Item root(json_, name_);
        const Item accessor = root.at("accessors").item(reference.whole(UINT32_MAX));
        if (accessor.has("sparse")) accessor.fail("sparse accessors are not supported");
        if (accessor.at("type").text() != type) accessor.at("type").fail(std::string("expected ") + type);
        const auto component = static_cast<Component>(accessor.at("componentType").whole(UINT32_MAX));
        const std::uint64_t width = component == Component::u8                                   ? 1
                                    : component == Component::u16                                ? 2
                                    : component == Component::u32 || component == Component::f32 ? 4
                                                                                                 : 0;
        if (!width) accessor.at("componentType").fail("expected 5121, 5123, 5125 or 5126");
        const std::uint64_t bytes = width * (std::string_view(type) == "VEC3" ? 3 : 1);
        const std::uint64_t count = accessor.at("count").whole(kMostVertices * 4);
        if (!accessor.has("bufferView"))
            accessor.fail(primitive_compression(root) + "the accessor has no bufferView");
        const Item view = root.at("bufferViews").item(accessor.at("bufferView").whole(UINT32_MAX));
        if (view.has("extensions") && view.at("extensions").has("EXT_meshopt_compression"))
            view.fail("the extension EXT_meshopt_compression is not supported");
        const std::uint64_t buffer = view.at("buffer").whole(UINT32_MAX);
        if (buffer != 0 || root.at("buffers").item(0).has("uri"))
            view.fail("bytes outside the file are not supported; export the model as one .glb");
        const std::uint64_t begin = view.whole("byteOffset", UINT32_MAX, 0);
        const std::uint64_t length = view.at("byteLength").whole(UINT32_MAX);
        if (!fits(begin, length, binary_.size()))
            view.fail("bytes " + std::to_string(begin) + " to " + std::to_string(begin + length) +
                      " of a binary chunk of " + std::to_string(binary_.size()));
        const std::uint64_t stride = view.whole("byteStride", 252, bytes);
        const std::uint64_t offset = accessor.whole("byteOffset", UINT32_MAX, 0);
        if (stride < bytes)
            view.fail("a byteStride of " + std::to_string(stride) + " for elements of " +
                      std::to_string(bytes));
        if (count && !fits(offset, (count - 1) * stride + bytes, length))
            accessor.fail(std::to_string(count) + " elements do not fit into their bufferView of " +
                          std::to_string(length) + " bytes");
        return {reinterpret_cast<const std::byte*>(binary_.data()) + begin + (count ? offset : 0), count,
                stride, component};
    }

    /// Draco leaves accessors without bytes even where it is not "required".
    static std::string primitive_compression(const Item& root) {
        if (!root.has("extensionsUsed")) return {};
        const Item list = root.at("extensionsUsed");
        for (std::size_t i = 0; i < list.size(); ++i)
            if (list.item(i).text() == "KHR_draco_mesh_compression")
                return "the extension KHR_draco_mesh_compression is not supported: ";
        return {};
    }

    const std::string& name_;
    MeshBuilder mesh_;
    std::string_view binary_;
    json json_;
    std::vector<bool> seen_;
};

}  // namespace

MeshFile parse_glb(std::string_view bytes, const std::string& name) { return GlbReader(bytes, name).read(); }

}  // namespace citysplat::io
