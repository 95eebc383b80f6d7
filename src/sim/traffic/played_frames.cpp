#include "sim/traffic/played_frames.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace citysplat::sim {

namespace {

/// Parts of frames are numbered from here on, 256 a frame: above all actors (Traffic has at most 2²⁴). What
/// returns are known by: never change.
constexpr std::uint32_t kFirstFramePart = trace::kFirstPart + (1u << 30);
constexpr std::uint32_t kPartsPerFrame = 256;
constexpr std::uint64_t kMostFrames = (1u << 30) / kPartsPerFrame;

/// A tile for each number of Splat::instance, with the splats that have it in their order.
std::array<std::vector<Splat>, kPartsPerFrame> by_instance(const SplatTile& frame) {
    std::array<std::vector<Splat>, kPartsPerFrame> all;
    for (std::size_t i = 0; i < frame.size(); ++i) all[frame.instance()[i]].push_back(frame.splat(i));
    return all;
}

trace::PoseKey standing_at(const Vec3d& place) { return key_of({place, {}}); }

}  // namespace

std::pair<double, double> FramePlay::span_s() const {
    std::pair<double, double> span{source->frame(0).begin_s, source->frame(0).end_s};
    for (std::size_t i = 1; i < source->size(); ++i)
        span.second = std::max(span.second, source->frame(i).end_s);
    return span;
}

void FramePlay::check() const {
    if (source->size() == 0) throw ConfigError(source->name() + ": it has no frames");
    const auto [begin_s, end_s] = span_s();
    if (repeat_s != 0 && !(repeat_s >= end_s - begin_s))
        throw ConfigError(source->name() + ": its frames last " + format_number(end_s - begin_s) +
                          " s and cannot begin again after " + format_number(repeat_s) +
                          " s: some would be there twice");
}

ReadyFrames::ReadyFrames(std::span<const FramePlay> plays, const trace::Tracer& tracer)
    : plays_(plays), tracer_(tracer) {
    for (const FramePlay& play : plays) {
        play.check();
        const auto [begin_s, end_s] = play.span_s();
        spans_.push_back({static_cast<std::uint32_t>(frames_), begin_s, end_s});
        frames_ += play.source->size();
        if (frames_ > kMostFrames)
            throw InputError(play.source->name() + ": with its frames there are " + format_count(frames_) +
                             "; a scenario can have " + format_count(kMostFrames));
    }
}

std::vector<ReadyFrames::Showing> ReadyFrames::showings(const Sweep& sweep) const {
    std::vector<Showing> all;
    const double end_s = sweep.begin_s + sweep.seconds;
    for (std::uint32_t p = 0; p < plays_.size(); ++p) {
        const FramePlay& play = plays_[p];
        const auto show = [&](double shift_s) {
            for (const std::size_t i : play.source->during(sweep.begin_s - shift_s, end_s - shift_s))
                all.push_back({p, static_cast<std::uint32_t>(i), shift_s});
        };
        if (play.repeat_s == 0) {
            show(play.time_offset_s);
            continue;
        }
        const double from =
            std::floor((sweep.begin_s - play.time_offset_s - spans_[p].end_s) / play.repeat_s);
        const double to = std::floor((end_s - play.time_offset_s - spans_[p].begin_s) / play.repeat_s);
        for (double turn = from; turn <= to; ++turn) show(play.time_offset_s + turn * play.repeat_s);
    }
    return all;
}

std::vector<ReadyFrames::Place> ReadyFrames::needed(std::span<const Sweep> sweeps) const {
    std::set<Place> all;
    for (const Sweep& sweep : sweeps)
        for (const Showing& s : showings(sweep)) all.insert({s.play, s.frame});
    return {all.begin(), all.end()};
}

std::uint64_t ReadyFrames::bytes(const Place& place) const {
    const FrameEntry entry = plays_[place.first].source->frame(place.second);
    // Each of its shapes may round up by itself.
    return tracer_.estimated_bytes(entry.splats) + entry.objects.size() * tracer_.estimated_bytes(1);
}

std::uint64_t ReadyFrames::bytes_for(std::span<const Sweep> sweeps) const {
    std::uint64_t sum = 0;
    for (const Place& place : needed(sweeps)) sum += bytes(place);
    return sum;
}

std::uint64_t ReadyFrames::bytes_of_all() const {
    std::uint64_t sum = 0;
    for (std::uint32_t p = 0; p < plays_.size(); ++p)
        for (std::uint32_t i = 0; i < plays_[p].source->size(); ++i) sum += bytes({p, i});
    return sum;
}

ReadyFrames::Frame ReadyFrames::loaded(const Place& place) const {
    const FramePlay& play = plays_[place.first];
    const SplatTile splats = play.source->load(place.second);
    const FrameEntry entry = play.source->frame(place.second);
    Frame frame{standing_at(splats.frame().origin_m()), {}};
    const auto pieces = by_instance(splats);
    const std::uint32_t first =
        kFirstFramePart + (spans_[place.first].first_number + place.second) * kPartsPerFrame;
    for (std::uint32_t number = 0; number < pieces.size(); ++number) {
        if (pieces[number].empty()) continue;
        if (number > entry.objects.size())
            throw CorruptionError(play.source->name() + ": a frame from " + format_number(entry.begin_s) +
                                  " s on has splats of object " + std::to_string(number) +
                                  ", and its index names " + std::to_string(entry.objects.size()) +
                                  "; make it again");
        const std::uint16_t instance = number == 0 ? play.rest : play.instances.at(entry.objects[number - 1]);
        frame.pieces.push_back(
            {tracer_.load(SplatTile(splats.frame(), pieces[number])), {first + number, 0, instance}});
    }
    return frame;
}

void ReadyFrames::make_ready(std::span<const Sweep> sweeps) {
    const std::vector<Place> places = needed(sweeps);
    std::erase_if(ready_, [&](const auto& entry) {
        return !std::binary_search(places.begin(), places.end(), entry.first);
    });
    std::vector<Place> missing;
    for (const Place& place : places)
        if (!ready_.contains(place)) missing.push_back(place);
    std::vector<Frame> fresh(missing.size());
    parallel_tasks(missing.size(), [&](std::size_t i) { fresh[i] = loaded(missing[i]); });
    for (std::size_t i = 0; i < missing.size(); ++i) ready_.emplace(missing[i], std::move(fresh[i]));
    loaded_ += missing.size();
}

void ReadyFrames::add_to(ScanParts& parts, const Sweep& sweep, const ScanReach& reach) const {
    for (const Showing& showing : showings(sweep)) {
        const FrameEntry entry = plays_[showing.play].source->frame(showing.frame);
        if (distance_between(entry.box, reach.path) > reach.range_m + 1) continue;
        const Frame& frame = ready_.at({showing.play, showing.frame});
        for (const Piece& piece : frame.pieces) {
            trace::Part part;
            part.shape = piece.shape.get();
            // Where one frame ends and the next one begins are the same doubles, and so the same floats.
            part.from_s = static_cast<float>(entry.begin_s + showing.shift_s - sweep.begin_s);
            part.to_s = static_cast<float>(entry.end_s + showing.shift_s - sweep.begin_s);
            part.facts = piece.facts;
            parts.add_standing(frame.at, part);
        }
    }
}

}  // namespace citysplat::sim
