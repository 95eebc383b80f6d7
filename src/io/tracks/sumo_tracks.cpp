#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "io/tracks/track_formats.hpp"
#include "io/tracks/xml_reader.hpp"
#include "io/trajectory/trajectory_formats.hpp"

#include <cmath>
#include <unordered_map>

/// SUMO's floating car data: time steps with the vehicles and persons of each. The position of a vehicle is
/// the middle of its front bumper, and persons are placed by their front in the same way (eclipse-sumo/sumo
/// issue 10608); angles count clockwise from north. The sizes are in the file of vehicle types.
namespace citysplat::io {

namespace {

/// What SUMO itself takes for types that say nothing: a passenger car, a person.
constexpr ObjectSize kCar{5.0, 1.8, 1.5}, kPerson{0.215, 0.478, 1.719};

double number_in(std::string_view text, const NumberRange& range, const std::string& where) {
    const auto value = parse_number(text);
    if (!value || !range.contains(*value))
        throw InputError(where + ": \"" + printable(text.substr(0, 40)) + "\"; expected a number " +
                         range.text());
    return *value;
}

class TypeHandler final : public XmlHandler {
  public:
    explicit TypeHandler(std::string file) : file_(std::move(file)) {}

    void begin(const Element& element, std::uint64_t line) override {
        if (element.name != "vType" && element.name != "pType") return;
        const std::string id(element.attribute("id"));
        const std::string where = file_ + ": line " + std::to_string(line);
        if (id.empty()) throw InputError(where + ": a vType without id");
        const bool person = element.attribute("vClass") == "pedestrian";
        ObjectSize size = person ? kPerson : kCar;
        constexpr NumberRange kExtent_m{0.01, 1000, "m"};
        for (const auto& [key, value] :
             {std::pair{"length", &size.length_m}, {"width", &size.width_m}, {"height", &size.height_m}})
            if (element.has(key))
                *value = number_in(element.attribute(key), kExtent_m,
                                   where + ": vType " + printable(id) + ": " + key);
        sizes[id] = size;
    }

    std::unordered_map<std::string, ObjectSize> sizes;

  private:
    std::string file_;
};

class NetworkHandler final : public XmlHandler {
  public:
    explicit NetworkHandler(std::string file) : file_(std::move(file)) {}

    void begin(const Element& element, std::uint64_t line) override {
        if (element.name != "location") return;
        const std::string_view text = element.attribute("netOffset");
        const std::size_t comma = text.find(',');
        const std::string where = file_ + ": line " + std::to_string(line) + ": netOffset";
        if (comma == std::string_view::npos) throw InputError(where + ": expected two numbers");
        offset = Vec3d{number_in(text.substr(0, comma), ranges::kPosition_m, where),
                       number_in(text.substr(comma + 1), ranges::kPosition_m, where), 0};
    }
    bool is_done() const override { return offset.has_value(); }

    std::optional<Vec3d> offset;

  private:
    std::string file_;
};

class FcdHandler final : public XmlHandler {
  public:
    FcdHandler(const TrackRequest& request, Vec3d net_offset,
               std::unordered_map<std::string, ObjectSize> sizes)
        : request_(request), net_offset_(net_offset), sizes_(std::move(sizes)) {}

    void begin(const Element& element, std::uint64_t line) override {
        line_ = line;
        if (element.above.empty() && element.name != "fcd-export")
            fail("the file begins with <" + printable(element.name.substr(0, 40)) +
                 ">; expected <fcd-export>");
        if (element.name == "timestep") {
            if (element.attribute("time").find(':') != std::string_view::npos)
                fail("a time of day; write the file without --human-readable-time");
            const double time_s = number(element, "time", ranges::kTime_s);
            if (time_s_ && !(time_s > *time_s_))
                fail("the time " + format_number(time_s) + " does not follow " + format_number(*time_s_));
            time_s_ = time_s;
            return;
        }
        const bool person = element.name == "person";
        if (!person && element.name != "vehicle") return;
        if (!time_s_) fail("a vehicle outside any time step");
        take(element, person);
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(request_.path.string() + ": line " + std::to_string(line_) + ": " + what);
    }
    double number(const Element& element, const char* key, const NumberRange& range) const {
        if (!element.has(key)) fail("<" + std::string(element.name) + "> has no \"" + key + "\"");
        return number_in(element.attribute(key), range,
                         request_.path.string() + ": line " + std::to_string(line_) + ": " + key);
    }

    ObjectSize size_of(std::string_view type, bool person) {
        const auto found = sizes_.find(std::string(type));
        if (found != sizes_.end()) return found->second;
        const bool usual = type == "DEFAULT_VEHTYPE" || type == "DEFAULT_PEDTYPE" || type.empty();
        if (!usual && !request_.options.types.empty())
            fail("the type \"" + printable(type.substr(0, 80)) + "\" is not in " +
                 request_.options.types.string());
        request_.boxes.note(
            "no file of types says how large the vehicles are: SUMO's usual car of 5 × 1.8 × "
            "1.5 m and person of 0.22 × 0.48 × 1.72 m are assumed");
        return person ? kPerson : kCar;
    }

    void take(const Element& element, bool person) {
        const std::string_view type = element.attribute("type");
        const ObjectSize size = size_of(type, person);
        const double angle = number(element, "angle", {-720, 720, "degrees"});
        const double slope = element.has("slope") ? number(element, "slope", {-90, 90, "degrees"}) : 0;
        const double z = element.has("z") ? number(element, "z", ranges::kPosition_m) : 0;
        if (!element.has("z"))
            request_.boxes.note("no heights: z is 0; ground = \"city\" stands the traffic on the road");
        Pose pose{{number(element, "x", ranges::kPosition_m), number(element, "y", ranges::kPosition_m), z},
                  from_heading(angle * exact::kRadPerDegree, slope * exact::kRadPerDegree, 0)};
        pose.translation = pose.translation - net_offset_;
        pose.translation = pose.apply({-size.length_m / 2, 0, 0});
        // Vehicles and persons may have the same id.
        key_.assign(element.name).append(" ").append(element.attribute("id"));
        if (element.attribute("id").empty()) fail("no id");
        request_.boxes.add({key_, element.attribute("id"), type, {}, size, {*time_s_, pose}, line_});
    }

    const TrackRequest& request_;
    Vec3d net_offset_;
    std::unordered_map<std::string, ObjectSize> sizes_;
    std::optional<double> time_s_;
    std::string key_;
    std::uint64_t line_ = 0;
};

}  // namespace

void read_sumo_tracks(const TrackRequest& request) {
    request.boxes.set_record_kind("line");
    // A vehicle that is missing in a time step is not there.
    request.boxes.set_gap(0, 1.5);
    std::unordered_map<std::string, ObjectSize> sizes;
    if (!request.options.types.empty()) {
        TypeHandler types(request.options.types.string());
        read_xml(request.options.types, types, request.cancel);
        sizes = std::move(types.sizes);
    }
    Vec3d offset{0, 0, 0};
    if (!request.options.network.empty()) {
        NetworkHandler network(request.options.network.string());
        read_xml(request.options.network, network, request.cancel);
        if (!network.offset)
            throw InputError(request.options.network.string() +
                             ": no <location netOffset=…> in this network");
        offset = *network.offset;
    }
    FcdHandler handler(request, offset, std::move(sizes));
    read_xml(request.path, handler, request.cancel);
}

}  // namespace citysplat::io
