#include "sim/session/scan_group.hpp"

#include "core/parallel.hpp"
#include "sim/scan/scan_tracer.hpp"
#include "trace/tile_frustum.hpp"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>

namespace citysplat::sim {

struct GroupScanner::Batches : tbb::enumerable_thread_specific<RayBatch> {};

GroupScanner::GroupScanner(trace::ResidentCity& city) : city_(city), batches_(std::make_unique<Batches>()) {}
GroupScanner::~GroupScanner() = default;

std::uint64_t GroupScanner::fire(ScanGroup& group, GroupTiles tiles, const CancelToken& cancel) {
    if (!tiles.fit) sort_by_distance(group, tiles.tiles);
    KeptHits kept;
    const std::uint64_t before = city_.passes();
    const auto missing = city_.visit(tiles.tiles, cancel, [&](const trace::ResidentCity::Pass& pass) {
        if (!pass.only()) return trace_pass(group, pass, kept, cancel);
        if (tiles.upcoming) city_.prefetch(tiles.upcoming());
        trace_at_once(group, pass.tiles, cancel);
    });
    mark_missing(group, missing, cancel);
    return tiles.fit ? group.scans.size() : city_.passes() - before;
}

namespace {

/// Calls f(scan of the group, first pulse, count) for batches of pulses, in parallel.
template <class F>
void for_each_batch(const ScanGroup& group, std::size_t batch, const CancelToken& cancel, F f) {
    std::vector<std::size_t> begins{0};
    for (const ScanRays& rays : group.rays)
        begins.push_back(begins.back() + (rays.size() + batch - 1) / batch);
    parallel_for(begins.back(), [&](std::size_t i) {
        cancel.check();
        const auto scan =
            static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), i) - begins.begin()) - 1;
        const std::size_t first = (i - begins[scan]) * batch;
        f(scan, first, std::min(batch, group.rays[scan].size() - first));
    });
}

}  // namespace

std::size_t GroupScanner::batch_pulses(const ScanGroup& group) {
    const ScanRays& first = group.rays[0];
    const ScanView view = first.view();
    RayBatch& sample = batches_->local();
    sample.generate(view, 0, std::min(first.size(), trace::Tracer::kSampleRays));
    return std::max<std::size_t>(1, city_.tracer().batch_rays(sample.rays()) / view.model.beam.rays);
}

void GroupScanner::trace_at_once(ScanGroup& group, const trace::TileSet& tiles, const CancelToken& cancel) {
    const trace::Tracer& tracer = city_.tracer();
    const std::size_t pulses = batch_pulses(group);
    for_each_batch(group, pulses, cancel, [&](std::size_t s, std::size_t first, std::size_t count) {
        const ScanView view = group.rays[s].view();
        trace_scan(tracer, {tiles, group.parts[s].parts()}, {view, first, count}, batches_->local(),
                   group.scans[s].returns);
    });
}

void GroupScanner::sort_by_distance(const ScanGroup& group, std::vector<std::uint32_t>& tiles) const {
    const Vec3d origin = group.rays[0].world_from_sensor().translation;
    std::vector<std::pair<double, std::uint32_t>> by_distance;
    for (const std::uint32_t tile : tiles) {
        const TileEntry& entry = city_.source().tiles()[tile];
        by_distance.emplace_back(trace::distance_to_box(origin, {entry.min, entry.max}), tile);
    }
    std::sort(by_distance.begin(), by_distance.end());
    for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i] = by_distance[i].second;
}

void GroupScanner::trace_pass(ScanGroup& group, const trace::ResidentCity::Pass& pass, KeptHits& kept,
                              const CancelToken& cancel) {
    const trace::Tracer& tracer = city_.tracer();
    const ScanView view = group.rays[0].view();
    const ReturnModel& model = view.model;
    const std::size_t each = model.beam.rays;
    // Once is enough for the parts: what was met is kept.
    const trace::Scene scene(pass.tiles,
                             pass.first ? group.parts[0].parts() : std::span<const trace::Part>());
    if (model.depth > 1)
        kept.lists.resize(view.firings.count * each);
    else
        kept.hits.resize(view.firings.count * each);
    const auto part = [each](auto& all, std::size_t first, std::size_t count) {
        return all.empty() ? std::span(all) : std::span(all).subspan(first * each, count * each);
    };
    const std::size_t pulses = batch_pulses(group);
    for_each_batch(group, pulses, cancel, [&](std::size_t, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_->local();
        batch.generate(view, first, count);
        const auto hits = part(kept.hits, first, count);
        const auto lists = part(kept.lists, first, count);
        if (model.depth > 1)
            tracer.nearest(scene, batch.rays(), model.depth, model.gap_m, lists);
        else
            tracer.closest(scene, batch.rays(), hits);
        if (pass.last) batch.make_returns(view, hits, lists, group.scans[0].returns);
    });
}

namespace {

/// A ray of this number would have met something else at `entry_m`, perhaps.
void mark_behind(double entry_m, const ReturnModel& model, std::uint32_t ray, Scan& scan) {
    // So far behind a return a hit may still have been part of it.
    const double depth_m = (model.depth - 1) * static_cast<double>(model.gap_m);
    for (std::size_t at = ray; at < scan.returns.size(); at += scan.pulses()) {
        Return& r = scan.returns[at];
        if (at != ray && r.status == RayStatus::none)
            break;  // what a second one would have been, is told once
        // Of a pulse with a width another sub-ray may have made the return: it says nothing about this one.
        if (r.status == RayStatus::none || model.beam.rays > 1 ||
            entry_m < static_cast<double>(r.range_m) + depth_m)
            r.status = RayStatus::missing;
    }
}

}  // namespace

void GroupScanner::mark_missing(ScanGroup& group, std::span<const std::uint32_t> tiles,
                                const CancelToken& cancel) {
    if (tiles.empty()) return;
    const std::size_t pulses = batch_pulses(group);
    for_each_batch(group, pulses, cancel, [&](std::size_t s, std::size_t first, std::size_t count) {
        RayBatch& batch = batches_->local();
        const ScanView view = group.rays[s].view();
        batch.generate(view, first, count);
        for (std::size_t i = 0; i < count; ++i)
            for (std::uint32_t k = 0; k < view.model.beam.rays; ++k) {
                const trace::Ray& ray = batch.rays()[i * view.model.beam.rays + k];
                for (const std::uint32_t tile : tiles) {
                    const TileEntry& e = city_.source().tiles()[tile];
                    const double entry = trace::entry_distance(ray, {e.min, e.max});
                    if (entry >= 0) mark_behind(entry, view.model, batch.firings()[i].ray, group.scans[s]);
                }
            }
    });
}

}  // namespace citysplat::sim
