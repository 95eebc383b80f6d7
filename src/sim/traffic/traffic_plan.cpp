#include "sim/traffic/traffic_plan.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/trajectory/trajectory_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace citysplat::sim {

namespace {

/// Instances of the scenario: those that were asked for, and the next free ones for the others.
class Instances {
  public:
    void take(std::optional<std::uint16_t> instance) {
        if (instance) taken_.insert(*instance);
    }
    std::uint16_t next() {
        while (taken_.contains(next_)) ++next_;
        if (next_ > 65535) throw InputError("more than 65 535 objects: an instance has 16 bits");
        taken_.insert(next_);
        return static_cast<std::uint16_t>(next_);
    }

  private:
    std::set<std::uint32_t> taken_;
    std::uint32_t next_ = 1;
};

/// Of a vehicle that is there when a session is told where it is.
Track nowhere(const std::string& name) {
    Track track = Track::along(name, Trajectory({{0, Pose{}}}));
    track.begin_s = std::numeric_limits<double>::max();
    return track;
}

class Planner {
  public:
    Planner(const ScenarioThings& things, const TrafficSources& sources, const TrafficSpan& span,
            const CancelToken& cancel)
        : things_(things), sources_(sources), span_(span), cancel_(cancel), shelf_(things, sources) {
        for (const ScenarioActor& a : things.actors) instances_.take(a.instance);
        for (const ScenarioVehicle& v : things.vehicles) instances_.take(v.instance);
    }

    TrafficPlan make() {
        for (const ScenarioActor& a : things_.actors) add(a);
        for (std::size_t i = 0; i < things_.vehicles.size(); ++i)
            add(things_.vehicles[i], static_cast<std::uint32_t>(i));
        for (const ScenarioTraffic& t : things_.traffic) add(t);
        for (const ScenarioObstacle& o : things_.obstacles) add(o);
        for (const ScenarioSnapshots& s : things_.snapshots) add(s);
        for (const std::string& note : shelf_.notes()) say(note);
        plan_.shapes = shelf_.take_shapes();
        return std::move(plan_);
    }

  private:
    /// From which directions the sensors see an object, in its own frame; each ten degrees once.
    std::vector<double> azimuths_of(const Track& track) const {
        constexpr double kStep_s = 0.5, kMostSteps = 1000;
        std::set<double> tens;
        for (const TrafficSpan::Way& way : span_.ways) {
            const double from_s = std::max({track.begin_s, way.trajectory->begin_s(), span_.begin_s});
            const double to_s = std::min({track.end_s, way.trajectory->end_s(), span_.end_s});
            for (double k = 0; k < kMostSteps && from_s + k * kStep_s <= to_s; ++k) {
                const double time_s = from_s + k * kStep_s;
                const auto sensor = way.trajectory->at(time_s);
                if (!sensor) continue;
                const Vec3d seen = inverse(track.pose_at(time_s)).apply(sensor->translation);
                if (length(seen) > way.reach_m) continue;
                tens.insert(std::floor(exact::atan2(seen.y, seen.x) * exact::kDegreesPerRad / 10 + 0.5));
            }
        }
        std::vector<double> azimuths;
        for (const double ten : tens) azimuths.push_back(10 * ten * exact::kRadPerDegree);
        return azimuths;
    }

    /// Who wants to look like an object.
    struct Wanted {
        const Track& track;
        std::vector<std::string> classes;  ///< what it is, in words that a bank may know
        std::string who;                   ///< for messages
    };
    /// The object of that name; nullptr when a bank has none of the class.
    const UsedObject* find(const std::string& name, const Wanted& wanted) {
        cancel_.check();
        const auto bank = BankName::parse(name);
        if (!bank) return &shelf_.described(name);
        ObjectWish wish{{}, wanted.track.size, azimuths_of(wanted.track), things_.seed, wanted.track.name};
        if (wanted.classes.empty()) return shelf_.of_bank(*bank, wish);
        for (const std::string& class_name : wanted.classes) {
            wish.class_name = class_name;
            if (const UsedObject* found = shelf_.of_bank(*bank, wish)) return found;
        }
        return nullptr;
    }
    const UsedObject& require(const std::string& name, const Wanted& wanted) {
        if (const UsedObject* found = find(name, wanted)) return *found;
        const BankName bank = *BankName::parse(name);
        throw ConfigError(wanted.who + ": " + bank.folder.string() + " has no object of the class \"" +
                          (wanted.classes.empty() ? std::string() : wanted.classes.front()) +
                          "\"; there are " + shelf_.classes_of_bank(bank));
    }
    static std::vector<std::string> words(const std::string& class_name) {
        return class_name.empty() ? std::vector<std::string>{} : std::vector<std::string>{class_name};
    }

    void say(const std::string& note) {
        if (std::find(plan_.notes.begin(), plan_.notes.end(), note) == plan_.notes.end())
            plan_.notes.push_back(note);
    }

    struct Place {
        std::string class_name;
        bool on_ground = false;
    };
    void put(const UsedObject& used, Actor actor, const Place& place) {
        actor.shape = used.shape;
        actor.object_from_shape = actor.object_from_shape * used.object_from_shape;
        if (actor.name.empty()) actor.name = actor.track.name;
        std::string class_name = place.class_name.empty() ? used.class_name : place.class_name;
        if (!place.class_name.empty())
            actor.label = require_label(sources_.classes, place.class_name, "\"" + actor.name + "\"");
        if (const auto label = label_of(sources_.classes, class_name))
            if (const auto found = sources_.classes.classes().find(*label);
                found != sources_.classes.classes().end())
                class_name = found->second.name;
        plan_.rows.push_back({class_name, used.name, used.size});
        plan_.on_ground.push_back(place.on_ground);
        plan_.actors.push_back(std::move(actor));
    }

    void add(const ScenarioActor& a) {
        Actor actor;
        actor.name = a.name;
        if (a.track.empty()) {
            actor.track = Track::along(a.name, Trajectory({{0, a.place}}, a.name));
        } else {
            TrajectoryOptions how;
            how.allow_gaps = true;
            actor.track = Track::along(a.name, read_trajectory(a.track, how));
        }
        actor.track.begin_s = std::max(actor.track.begin_s, a.from_s);
        actor.track.end_s = std::min(actor.track.end_s, a.to_s);
        if (!(actor.track.begin_s < actor.track.end_s))
            throw ConfigError("actor \"" + a.name + "\": from_s and to_s leave nothing of its track");
        actor.instance = a.instance ? *a.instance : instances_.next();
        const UsedObject& used =
            require(a.object, {actor.track, words(a.class_name), "actor \"" + a.name + "\""});
        put(used, std::move(actor), {a.class_name, a.on_ground});
    }

    void add(const ScenarioVehicle& v, std::uint32_t number) {
        if (v.object.empty()) return;
        Actor actor;
        actor.name = v.name;
        TrajectoryOptions how;
        how.allow_gaps = true;
        actor.track =
            v.trajectory.empty() ? nowhere(v.name) : Track::along(v.name, read_trajectory(v.trajectory, how));
        actor.object_from_shape = v.body_from_object;
        actor.instance = v.instance ? *v.instance : instances_.next();
        actor.vehicle = number;
        actor.seen_by_itself = v.sees_itself;
        const UsedObject& used =
            require(v.object, {actor.track, words(v.class_name), "vehicle \"" + v.name + "\""});
        put(used, std::move(actor), {v.class_name, false});
    }

    /// The class in our words, or nothing when nobody says it.
    std::string class_of(const Track& track, const ScenarioTraffic& traffic) {
        if (const auto found = traffic.classes.find(track.class_name); found != traffic.classes.end())
            return found->second;
        const std::string& name = track.class_name;
        if (label_of(sources_.classes, name)) return name;
        // nuScenes: vehicle.car
        const std::string last = name.substr(name.rfind('.') + 1);
        if (label_of(sources_.classes, last)) return last;
        if (!name.empty())
            say(traffic.file.string() + ": the class map " + sources_.classes.name() + " has no class \"" +
                printable(name) +
                "\"; its returns have the object's own label; [traffic.classes] says what it is");
        return {};
    }

    void add(const ScenarioTraffic& t) {
        TrackOptions options = t.options;
        options.from_s = span_.begin_s, options.to_s = span_.end_s;
        options.region = span_.region;
        TrackFile file = read_tracks(t.file, options, cancel_);
        for (const std::string& note : file.notes) say(t.file.string() + ": " + note);
        std::map<std::string, std::uint16_t> by_name;  // the pieces of a track share their instance
        std::uint64_t left_out = 0, others = 0;        // without a look; with one of another size
        std::string first_left_out, first_other;
        for (Track& track : file.tracks) {
            cancel_.check();
            const std::string class_name = class_of(track, t);
            const UsedObject* used = look_of(track, class_name, t);
            if (!used) {
                if (!(track.size.length_m > 0 && track.size.width_m > 0 && track.size.height_m > 0)) {
                    if (left_out++ == 0) first_left_out = track.name;
                    continue;
                }
                used = &shelf_.box(track.size, t.reflectance);
                say(t.file.string() + ": objects without a mesh are boxes");
            }
            if (t.fit)
                used = &shelf_.fitted(*used, track.size);
            else if (differs(used->size, track.size) && others++ == 0)
                first_other = "\"" + printable(track.name) + "\", " + text_of(track.size) +
                              ", looks like \"" + used->name + "\", " + text_of(used->size);
            const auto [at, fresh] = by_name.emplace(track.name + "\n" + track.class_name, 0);
            if (fresh) at->second = instances_.next();
            Actor actor;
            actor.instance = at->second;
            if (!(track.size.length_m > 0)) track.size = used->size;
            actor.track = std::move(track);
            put(*used, std::move(actor), {class_name, t.on_ground});
        }
        if (left_out > 0)
            say(t.file.string() + ": " + format_count(left_out) + " tracks, \"" + printable(first_left_out) +
                "\" the first of them, have no size and no object, and are left out; [traffic.objects] names "
                "one");
        if (others > 0)
            say(t.file.string() + ": " + format_count(others) +
                " tracks have another size than the objects they look like (" + first_other +
                "); fit = true stretches the objects");
    }

    /// What a track looks like: its own object, else that of its class; nullptr: a box.
    const UsedObject* look_of(const Track& track, const std::string& class_name, const ScenarioTraffic& t) {
        if (shelf_.describes(track.object_name)) return &shelf_.described(track.object_name);
        for (const std::string& key : {track.object_name, track.class_name, class_name, std::string("*")}) {
            const auto found = t.objects.find(key);
            if (found == t.objects.end()) continue;
            Wanted wanted{track, words(track.class_name), "\"" + track.name + "\""};
            if (!class_name.empty()) wanted.classes.push_back(class_name);
            if (const UsedObject* used = find(found->second, wanted)) return used;
            say(t.file.string() + ": " + BankName::parse(found->second)->folder.string() +
                " has no object of the class \"" + printable(track.class_name) + "\"; those are boxes");
            return nullptr;
        }
        return nullptr;
    }

    void add(const ScenarioObstacle& o) {
        ObstacleField field = o.field;
        if (!o.has_start) field.start_s = span_.begin_s;
        const double end_s = span_.end_s + span_.sweep_s;
        constexpr double kMostPoses = 20e6;  // 1.3 GB
        const double poses = field.count * most_poses(field, span_.begin_s, end_s);
        if (!(poses <= kMostPoses))
            throw ConfigError("obstacle \"" + o.name + "\": about " + format_number(poses) +
                              " poses of its " + std::to_string(field.count) + " obstacles between " +
                              format_number(std::min(field.start_s, span_.begin_s)) + " and " +
                              format_number(end_s) +
                              " s; the most is 20 million. Lower count or speed_m_s, raise leg_s, or put "
                              "start_s, from_s and to_s closer together");
        for (std::uint32_t i = 0; i < field.count; ++i) {
            cancel_.check();
            const std::uint16_t instance = instances_.next();
            for (Track& track : obstacle_tracks(field, i, span_.begin_s, end_s)) {
                Actor actor;
                actor.name = track.name = o.name + " " + std::to_string(i);
                const UsedObject& used = require(o.object, {track, {}, "obstacle \"" + o.name + "\""});
                actor.instance = instance;
                actor.track = std::move(track);
                put(used, std::move(actor), {});
            }
        }
    }

    void add(const ScenarioSnapshots& s) {
        if (!sources_.stored)
            throw ConfigError(s.folder.string() + ": snapshots cannot be opened in this place");
        FramePlay play{sources_.stored->frames(s.folder), s.time_offset_s, s.repeat_s, 0, {}};
        play.check();
        for (std::size_t i = 0; i < play.source->size(); ++i) {
            const FrameEntry frame = play.source->frame(i);
            for (const std::uint32_t object : frame.objects) play.instances[object] = 0;
        }
        const std::string name = s.folder.filename().string();
        const auto tell = [&](std::uint16_t instance, const std::string& class_name) {
            plan_.frame_rows.push_back({instance, class_name, name});
            return instance;
        };
        play.rest = tell(instances_.next(), "");
        for (auto& [object, instance] : play.instances)
            instance = tell(instances_.next(), name_of_label(static_cast<std::uint16_t>(object & 0xffffu)));
        plan_.frames.push_back(std::move(play));
    }
    std::string name_of_label(std::uint16_t label) const {
        const auto found = sources_.classes.classes().find(label);
        return found != sources_.classes.classes().end() ? found->second.name : std::to_string(label);
    }

    const ScenarioThings& things_;
    const TrafficSources& sources_;
    const TrafficSpan& span_;
    const CancelToken& cancel_;
    ObjectShelf shelf_;
    Instances instances_;
    TrafficPlan plan_;
};

}  // namespace

TrafficPlan plan_traffic(const ScenarioThings& things, const TrafficSources& sources, const TrafficSpan& span,
                         const CancelToken& cancel) {
    return Planner(things, sources, span, cancel).make();
}

}  // namespace citysplat::sim
