#include "io/write/gltf/glb_writer.hpp"

#include "core/error.hpp"
#include "io/write/field.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>

namespace citysplat::io {

namespace {

using nlohmann::json;

enum Component : int { kU16 = 5123, kU32 = 5125, kF32 = 5126 };
enum Target : int { kVertices = 34962, kIndices = 34963 };

/// Bytes before the text of the JSON chunk, and of the head of the binary chunk behind it.
constexpr std::size_t kJsonAt = 20, kChunkHead = 8;

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

json numbers(Vec3f v) { return json{v.x, v.y, v.z}; }
json numbers(Vec3d v) { return json{v.x, v.y, v.z}; }

}  // namespace

class GlbWriter::State {
  public:
    State(FileWriter& out, GlbLabel label, std::size_t most_parts)
        : out_(out), label_(std::move(label)), most_parts_(most_parts) {
        if (out.position() != 0) throw std::logic_error("a GLB file begins at the beginning");
        json asset{{"version", "2.0"}, {"generator", "citysplat"}};
        asset["extras"] = {{"origin_m", numbers(label_.origin_m)}};
        if (!label_.crs.empty()) asset["extras"]["crs"] = label_.crs;
        // Columns of the matrix: where x, y and z of the world go.
        json up{{"name", "z up"}, {"matrix", {1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1}}};
        text_ = {{"asset", asset}, {"scene", 0}};
        text_["scenes"] = json::array({json::object({{"nodes", json::array({0})}})});
        text_["nodes"] = json::array({up});
        // The longest that a part can need: each of its numbers at its longest.
        constexpr std::size_t kRoomForPart = 2600, kRoomBesides = 1000;
        json_room_ = padded(text_.dump(-1, ' ', true).size() + kRoomBesides + most_parts * kRoomForPart);
        const std::vector<std::byte> room(kJsonAt + json_room_ + kChunkHead);
        out_.write(room);
    }

    void add(const GlbPart& part) {
        if (part.empty()) return;
        if (parts_++ == most_parts_) throw std::logic_error("more parts than were announced");
        const std::size_t n = part.positions.size();
        const bool points = part.triangles.empty();
        json attributes;
        attributes["POSITION"] = add_column<Vec3f>(part.positions, {"VEC3", kF32});
        json& places = text_["accessors"].back();
        Vec3f low = part.positions[0], high = low;
        for (const Vec3f& p : part.positions) {
            low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
            high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
        }
        places["min"] = numbers(low), places["max"] = numbers(high);
        if (!part.normals.empty()) attributes["NORMAL"] = add_column<Vec3f>(part.normals, {"VEC3", kF32});
        if (!part.intensity.empty()) {
            constexpr std::uint16_t kOpaque = 65535;
            std::vector<std::array<std::uint16_t, 4>> grey(n);
            for (std::size_t i = 0; i < n; ++i)
                grey[i] = {part.intensity[i], part.intensity[i], part.intensity[i], kOpaque};
            attributes["COLOR_0"] = add_column<std::array<std::uint16_t, 4>>(grey, {"VEC4", kU16, true});
        }
        if (!part.label.empty()) {
            std::vector<std::array<std::uint16_t, 2>> wide(n);  // a vertex is a multiple of four bytes
            for (std::size_t i = 0; i < n; ++i) wide[i] = {part.label[i], 0};
            attributes["_LABEL"] =
                add_column<std::array<std::uint16_t, 2>>(wide, {"SCALAR", kU16, false, true});
        }
        if (!part.radius_m.empty())
            attributes["_RADIUS"] = add_column<float>(part.radius_m, {"SCALAR", kF32});
        json primitive{{"attributes", attributes}, {"mode", points ? 0 : 4}, {"material", points ? 0 : 1}};
        if (!points) {
            const std::span<const std::uint32_t> corners(part.triangles[0].data(), 3 * part.triangles.size());
            primitive["indices"] =
                add_column<std::uint32_t>(corners, {"SCALAR", kU32, false, false, kIndices});
        }
        text_["meshes"].push_back({{"name", part.name}, {"primitives", json::array({primitive})}});
        text_["nodes"].push_back({{"name", part.name},
                                  {"mesh", text_["meshes"].size() - 1},
                                  {"translation", numbers(part.origin_m - label_.origin_m)}});
    }

    void finish() {
        json& nodes = text_["nodes"];
        for (std::size_t i = 1; i < nodes.size(); ++i) nodes[0]["children"].push_back(i);
        if (parts_ > 0) {
            text_["buffers"] = json::array({json::object({{"byteLength", binary_bytes_}})});
            // Points have no sides; triangles are seen from both, and their colour is the intensity alone.
            text_["materials"] = json::array({material("points", false), material("surface", true)});
        }
        std::string text = text_.dump(-1, ' ', true);
        if (text.size() > json_room_) throw std::logic_error("the JSON chunk outgrew its room");
        text.resize(json_room_, ' ');
        // A file without parts ends with the JSON chunk; the empty chunk behind it is allowed.
        std::vector<std::byte> head(kJsonAt + json_room_ + kChunkHead);
        std::byte* at = head.data();
        const auto word = [&](std::uint32_t v) { put(at, v); };
        word(0x46546c67), word(2), word(static_cast<std::uint32_t>(head.size() + binary_bytes_));
        word(static_cast<std::uint32_t>(json_room_)), word(0x4e4f534a);
        at = std::copy_n(std::as_bytes(std::span(text)).data(), text.size(), at);
        word(static_cast<std::uint32_t>(binary_bytes_)), word(0x004e4942);
        out_.patch(0, head);
    }

  private:
    struct Kind {
        const char* type;
        Component component;
        bool normalised = false, strided = false;
        Target target = kVertices;
    };
    static json material(const char* name, bool both_sides) {
        return {{"name", name},
                {"doubleSided", both_sides},
                {"pbrMetallicRoughness", {{"metallicFactor", 0}, {"roughnessFactor", 1}}}};
    }

    /// Number of the accessor.
    template <class T>
    std::size_t add_column(std::span<const T> values, const Kind& kind) {
        const std::span<const std::byte> bytes = std::as_bytes(values);
        if (kJsonAt + json_room_ + kChunkHead + binary_bytes_ + bytes.size() + 4 >
            std::numeric_limits<std::uint32_t>::max())
            throw ResourceError(out_.file().path().string() +
                                ": a GLB file holds 4 GiB; --format 3dtiles writes a file for each piece");
        json view{{"buffer", 0},
                  {"byteOffset", binary_bytes_},
                  {"byteLength", bytes.size()},
                  {"target", static_cast<int>(kind.target)}};
        if (kind.strided) view["byteStride"] = sizeof(T);
        json accessor{{"bufferView", text_["bufferViews"].size()},
                      {"componentType", static_cast<int>(kind.component)},
                      {"count", values.size()},
                      {"type", kind.type}};
        if (kind.normalised) accessor["normalized"] = true;
        text_["bufferViews"].push_back(std::move(view));
        text_["accessors"].push_back(std::move(accessor));
        out_.write(bytes);
        binary_bytes_ += bytes.size();  // every column is a multiple of four bytes long
        return text_["accessors"].size() - 1;
    }

    FileWriter& out_;
    GlbLabel label_;
    std::size_t most_parts_, parts_ = 0, json_room_ = 0, binary_bytes_ = 0;
    json text_;
};

GlbWriter::GlbWriter(FileWriter& out, GlbLabel label, std::size_t most_parts)
    : state_(std::make_unique<State>(out, std::move(label), most_parts)) {}
GlbWriter::~GlbWriter() = default;
void GlbWriter::add(const GlbPart& part) { state_->add(part); }
void GlbWriter::finish() { state_->finish(); }

}  // namespace citysplat::io
