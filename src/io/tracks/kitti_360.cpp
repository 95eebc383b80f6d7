#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/tracks/frame_poses.hpp"
#include "io/tracks/track_formats.hpp"
#include "io/tracks/xml_reader.hpp"

#include <algorithm>
#include <cmath>

/// Boxes of KITTI-360: one element an object, or one an object and frame when it moves. The transform puts
/// the vertices into the world; its axes are those of the box, stretched, x forward. Some transforms mirror:
/// the box is the same, and its y axis points to the other side. Objects of sequence 4 have neither
/// semanticId nor instanceId; those that move have the number dynamicSeq.
namespace citysplat::io {

namespace {

constexpr double kUsualPeriod_s = 0.1;
constexpr std::size_t kMostNumbers = 100'000;

class BoxHandler final : public XmlHandler {
  public:
    explicit BoxHandler(const TrackRequest& request) : request_(request) {
        if (!request.options.times.empty()) times_ = read_frame_times(request.options.times);
    }

    void begin(const Element& element, std::uint64_t) override {
        if (element.above.size() == 1) object_ = {};
    }
    void end(std::string_view name, std::string_view text, std::span<const std::string> above,
             std::uint64_t line) override {
        line_ = line;
        if (above.size() == 1) return finish();
        if (above.size() == 2) {
            if (name == "label") object_.label = std::string(text);
            if (name == "semanticId") object_.semantic = number(name, text);
            if (name == "instanceId") object_.instance = number(name, text);
            if (name == "timestamp") object_.frame = number(name, text);
            if (name == "dynamicSeq") object_.moving = number(name, text);
        }
        if (above.size() == 3 && name == "data" && above[2] == "transform")
            object_.transform = numbers(name, text);
        if (above.size() == 3 && name == "data" && above[2] == "vertices")
            object_.vertices = numbers(name, text);
    }

  private:
    struct Object {
        std::string label;
        double semantic = NAN, instance = NAN, frame = NAN, moving = NAN;
        std::vector<double> transform, vertices;
    };

    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(request_.path.string() + ": line " + std::to_string(line_) + ": " + what);
    }
    double number(std::string_view name, std::string_view text) const {
        const auto value = parse_number(text);
        if (!value || !ranges::kPosition_m.contains(*value))
            fail("<" + std::string(name) + ">: \"" + printable(text.substr(0, 40)) + "\" is not a number");
        return *value;
    }
    std::vector<double> numbers(std::string_view name, std::string_view text) const {
        std::vector<double> values;
        for (const Line& line : Lines(text))
            for (const std::string_view word : words_of(line.text)) {
                values.push_back(number(name, word));
                if (values.size() > kMostNumbers) fail("a matrix that is too large");
            }
        return values;
    }

    double time_of(double frame) const {
        if (times_.empty()) {
            request_.boxes.note("no times are given: ten frames a second are assumed");
            return frame * kUsualPeriod_s;
        }
        const auto number = static_cast<std::size_t>(frame);
        if (number >= times_.size() || !std::isfinite(times_[number]))
            fail("frame " + format_number(frame) + " has no time in " + request_.options.times.string());
        return times_[number];
    }

    void finish() {
        const Object& o = object_;
        // Other elements at this level (the number of objects, …) have no transform.
        if (o.transform.empty() && o.vertices.empty()) return;
        if (o.transform.size() != 16)
            fail("the transform has " + std::to_string(o.transform.size()) + " numbers; expected 16");
        if (o.vertices.size() < 12 || o.vertices.size() % 3 != 0)
            fail("the vertices have " + std::to_string(o.vertices.size()) + " numbers; expected three each");
        if (std::isnan(o.frame)) fail("no timestamp");
        const bool has_ids = std::fabs(o.semantic) < 1e6 && std::fabs(o.instance) < 1e9;
        if (!has_ids && o.frame >= 0 && !(std::fabs(o.moving) < 1e9))
            fail("no semanticId or no instanceId, and no dynamicSeq");
        if (o.frame < -1 || o.frame != std::floor(o.frame))
            fail("the timestamp must be the number of a frame or -1");
        const auto& m = o.transform;
        if (m[12] != 0 || m[13] != 0 || m[14] != 0 || m[15] != 1)
            fail("the last row of the transform must be 0 0 0 1");
        const Vec3d columns[3]{{m[0], m[4], m[8]}, {m[1], m[5], m[9]}, {m[2], m[6], m[10]}};
        double stretch[3];
        Vec3d axes[3];
        for (int i = 0; i < 3; ++i) {
            stretch[i] = length(columns[i]);
            if (!(stretch[i] > 1e-6)) fail("the transform is flat");
            axes[i] = (1 / stretch[i]) * columns[i];
        }
        const double determinant = dot(axes[0], cross(axes[1], axes[2]));
        if (!(std::fabs(std::fabs(determinant) - 1) < 0.01))
            fail("the axes of the transform are not at right angles (determinant " +
                 format_number(determinant) + ")");
        if (determinant < 0) axes[1] = -1.0 * axes[1];
        Vec3d low{1e300, 1e300, 1e300}, high{-1e300, -1e300, -1e300};
        for (std::size_t i = 0; i + 2 < o.vertices.size(); i += 3) {
            const Vec3d v{o.vertices[i], o.vertices[i + 1], o.vertices[i + 2]};
            low = {std::min(low.x, v.x), std::min(low.y, v.y), std::min(low.z, v.z)};
            high = {std::max(high.x, v.x), std::max(high.y, v.y), std::max(high.z, v.z)};
        }
        const Vec3d bottom{(low.x + high.x) / 2, (low.y + high.y) / 2, low.z};
        const Vec3d origin =
            bottom.x * columns[0] + bottom.y * columns[1] + bottom.z * columns[2] + Vec3d{m[3], m[7], m[11]};
        const Pose pose{origin, from_rotation_matrix({axes[0].x, axes[1].x, axes[2].x, axes[0].y, axes[1].y,
                                                      axes[2].y, axes[0].z, axes[1].z, axes[2].z})};
        const bool stands = o.frame < 0;
        const std::string id = has_ids  ? format_number(o.semantic) + "/" + format_number(o.instance)
                               : stands ? o.label
                                        : "dynamic/" + format_number(o.moving);
        // Parts of the background share an instance; each stands for itself.
        const std::string key = stands ? id + "/" + std::to_string(++standing_) : id;
        request_.boxes.add(
            {key,
             id,
             o.label,
             {},
             {(high.x - low.x) * stretch[0], (high.y - low.y) * stretch[1], (high.z - low.z) * stretch[2]},
             {stands ? 0 : time_of(o.frame), pose},
             line_,
             stands});
    }

    const TrackRequest& request_;
    std::vector<double> times_;
    Object object_;
    std::uint64_t line_ = 0, standing_ = 0;
};

}  // namespace

void read_kitti_360(const TrackRequest& request) {
    request.boxes.set_record_kind("line");
    BoxHandler handler(request);
    read_xml(request.path, handler, request.cancel);
}

}  // namespace citysplat::io
