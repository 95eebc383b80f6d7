#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "io/tracks/frame_poses.hpp"
#include "io/tracks/track_formats.hpp"
#include "io/tracks/xml_reader.hpp"

#include <cmath>

/// tracklet_labels.xml of a KITTI raw drive: objects with one size, and a pose in the Velodyne's frame for
/// each frame from the first one on.
namespace citysplat::io {

namespace {

class TrackletHandler final : public XmlHandler {
  public:
    explicit TrackletHandler(const TrackRequest& request)
        : request_(request), frames_(request.path, request.options, request.cancel) {}

    void begin(const Element& element, std::uint64_t) override {
        if (element.name != "item") return;
        if (is_below(element.above, "tracklets")) object_ = {}, poses_.clear();
        if (is_below(element.above, "poses")) poses_.emplace_back();
    }
    void end(std::string_view name, std::string_view text, std::span<const std::string> above,
             std::uint64_t line) override {
        line_ = line;
        if (name == "item" && is_below(above, "tracklets")) return finish();
        if (!is_below(above, "item")) return;
        const bool pose = above.size() >= 2 && above[above.size() - 2] == "poses";
        if (pose && !poses_.empty())
            take_pose(name, text);
        else if (above.size() >= 2 && above[above.size() - 2] == "tracklets")
            take_object(name, text);
    }
    std::uint64_t objects() const { return number_; }

  private:
    struct Object {
        std::string type;
        double h = -1, w = -1, l = -1, first_frame = -1;
    };
    struct PoseAt {
        double tx = NAN, ty = NAN, tz = NAN, rx = 0, ry = 0, rz = NAN;
    };

    static bool is_below(std::span<const std::string> above, std::string_view name) {
        return !above.empty() && above.back() == name;
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(request_.path.string() + ": line " + std::to_string(line_) + ": " + what);
    }
    double number(std::string_view name, std::string_view text) const {
        const auto value = parse_number(text);
        if (!value || !std::isfinite(*value))
            fail("<" + std::string(name) + ">: \"" + printable(text.substr(0, 40)) + "\" is not a number");
        return *value;
    }
    void take_object(std::string_view name, std::string_view text) {
        if (name == "objectType") object_.type = std::string(text);
        if (name == "h") object_.h = number(name, text);
        if (name == "w") object_.w = number(name, text);
        if (name == "l") object_.l = number(name, text);
        if (name == "first_frame") object_.first_frame = number(name, text);
    }
    void take_pose(std::string_view name, std::string_view text) {
        PoseAt& p = poses_.back();
        for (const auto& [key, value] : {std::pair{"tx", &p.tx},
                                         {"ty", &p.ty},
                                         {"tz", &p.tz},
                                         {"rx", &p.rx},
                                         {"ry", &p.ry},
                                         {"rz", &p.rz}})
            if (name == key) *value = number(name, text);
    }
    void finish() {
        const std::string what = "object " + std::to_string(number_ + 1);
        if (object_.type.empty()) fail(what + " has no objectType");
        if (!(object_.h > 0 && object_.w > 0 && object_.l > 0)) fail(what + " has no size: h, w and l");
        if (!(object_.first_frame >= 0 && object_.first_frame < 1e9) ||
            object_.first_frame != std::floor(object_.first_frame))
            fail(what + ": first_frame must be the number of a frame");
        const std::string id = std::to_string(number_++);
        const auto first = static_cast<std::uint64_t>(object_.first_frame);
        for (std::size_t i = 0; i < poses_.size(); ++i) {
            const PoseAt& p = poses_[i];
            if (!std::isfinite(p.tx + p.ty + p.tz + p.rz))
                fail(what + ", pose " + std::to_string(i + 1) + ": tx, ty, tz or rz is missing");
            for (const double angle : {p.rx, p.ry, p.rz})
                if (!(std::fabs(angle) <= 100)) fail(what + ": angles are in radians");
            const StampedPose& sensor = frames_.at(first + i, request_.path.string() + ": " + what);
            const Pose pose{{p.tx, p.ty, p.tz}, from_yaw_pitch_roll(p.rz, p.ry, p.rx)};
            request_.boxes.add({id,
                                {},
                                object_.type,
                                {},
                                {object_.l, object_.w, object_.h},
                                {sensor.time_s, sensor.world_from_body * pose},
                                line_});
        }
    }

    const TrackRequest& request_;
    FramePoses frames_;
    Object object_;
    std::vector<PoseAt> poses_;
    std::uint64_t line_ = 0, number_ = 0;
};

}  // namespace

void read_kitti_tracklets(const TrackRequest& request) {
    request.boxes.set_record_kind("line");
    TrackletHandler handler(request);
    read_xml(request.path, handler, request.cancel);
}

}  // namespace citysplat::io
