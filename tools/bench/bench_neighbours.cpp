/// K nearest neighbours and plane fits for every point: the batched search against nanoflann, same points,
/// same threads, processor time. The results are compared.
#include "bench/bench_clock.hpp"
#include "bench/bench_files.hpp"
#include "bench/bench_main.hpp"
#include "bench/point_store.hpp"
#include "core/error.hpp"
#include "model/trajectory.hpp"
#include "splat/generation/point_cloud.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/search/plane_fit.hpp"

#include <nanoflann.hpp>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <numeric>
#include <string>

using namespace citysplat;
using splat::PointCloud;

namespace {

using bench::cpu_now_s;

struct Arguments {
    std::string drive;
    std::uint64_t k = 40, threads = 1, most_points = 1'000'000;
};

/// Processor time of building an index and of asking it about every point.
struct Times {
    double build_s, query_s;
};

struct FlannCloud {
    std::vector<float> xyz;
    std::size_t kdtree_get_point_count() const { return xyz.size() / 3; }
    float kdtree_get_pt(std::size_t i, std::size_t d) const { return xyz[3 * i + d]; }
    template <class Box>
    bool kdtree_get_bbox(Box&) const {
        return false;
    }
};
using FlannTree =
    nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, FlannCloud>, FlannCloud, 3>;

constexpr std::size_t kChunk = 4096;

template <class Body>
void chunks(std::size_t n, const Body& body) {
    tbb::parallel_for(std::size_t{0}, (n + kChunk - 1) / kChunk,
                      [&](std::size_t c) { body(c * kChunk, std::min(n, (c + 1) * kChunk)); });
}

/// `kth2` becomes the squared distance of each point's k-th neighbour.
Times run_flann(const PointCloud& c, std::size_t k, std::vector<float>& kth2) {
    FlannCloud cloud;
    for (std::size_t i = 0; i < c.size(); ++i)
        for (const std::int32_t v : {c.x[i], c.y[i], c.z[i]}) cloud.xyz.push_back(static_cast<float>(v));
    const double begin = cpu_now_s();
    FlannTree tree(3, cloud, nanoflann::KDTreeSingleIndexAdaptorParams(20));
    tree.buildIndex();
    const double built = cpu_now_s();
    chunks(c.size(), [&](std::size_t first, std::size_t last) {
        std::vector<std::uint32_t> index(k);
        std::vector<float> d2(k);
        for (std::size_t i = first; i < last; ++i) {
            tree.knnSearch(&cloud.xyz[3 * i], k, index.data(), d2.data());
            kth2[i] = d2[k - 1];
        }
    });
    return {built - begin, cpu_now_s() - built};
}

Times run_batched(const PointCloud& c, std::size_t k, bool fit, std::vector<splat::Moments>& moments) {
    const double begin = cpu_now_s();
    const splat::NeighbourIndex index(c.x, c.y, c.z, c.rank);
    const double built = cpu_now_s();
    const splat::Reach reach{static_cast<std::int32_t>(k), splat::kMaxReach};
    const std::vector<std::uint8_t> reach_class(c.size(), 0);
    tbb::enumerable_thread_specific<splat::SearchScratch> scratch;
    tbb::enumerable_thread_specific<std::vector<splat::PlaneFit>> fits;
    chunks(c.size(), [&](std::size_t first, std::size_t last) {
        std::vector<std::uint32_t> points(last - first);
        std::iota(points.begin(), points.end(), static_cast<std::uint32_t>(first));
        const std::span<splat::Moments> out(moments.data() + first, last - first);
        find_moments(index, {points, reach_class, {&reach, 1}}, out, scratch.local());
        if (fit) {
            fits.local().resize(last - first);
            fit_planes(out, fits.local());
        }
    });
    return {built - begin, cpu_now_s() - built};
}

/// The points of the first file of the drive, as many as asked for.
PointCloud load(const Arguments& arguments) {
    const auto files = bench::las_files_of(arguments.drive);
    const bench::PointStore store({files.data(), 1}, Trajectory());
    tiling::Region region = store.read(store.bounds(), 0);
    if (region.points.size() > arguments.most_points) region.points.resize(arguments.most_points);
    if (region.points.size() < arguments.k)
        throw InputError(files[0].string() + " has fewer than K = " + std::to_string(arguments.k) +
                         " points; give a larger drive");
    return splat::make_point_cloud(region.frame, region.points, {}, ClassMap(), CancelToken());
}

std::size_t count_different(std::span<const splat::Moments> moments, std::span<const float> kth2,
                            std::size_t k) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const auto found = static_cast<float>(moments[i].reach2);
        different +=
            moments[i].count == static_cast<std::int32_t>(k) && std::abs(found - kth2[i]) > 1e-6f * found;
    }
    return different;
}

void run(const Arguments& arguments, bench::Report& report) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, arguments.threads);
    const std::size_t k = arguments.k;
    const PointCloud cloud = load(arguments);
    report.text(std::to_string(cloud.size()) + " points, K = " + std::to_string(k) + ", " +
                std::to_string(arguments.threads) + " threads, " + std::string(splat::instruction_set()));
    std::vector<float> kth2(cloud.size());
    std::vector<splat::Moments> moments(cloud.size());
    const Times flann = run_flann(cloud, k, kth2);
    const Times search = run_batched(cloud, k, false, moments);
    const Times both = run_batched(cloud, k, true, moments);
    const auto row = [&](const std::string& what, const Times& times) {
        return bench::Row{what,     static_cast<double>(cloud.size()) * 1e-6 / times.query_s,
                          "Mpts/s", bench::Ratio{bench::ratio(flann.query_s, times.query_s), "nanoflann"},
                          true,     "index in " + bench::three_digits(times.build_s) + " CPU s"};
    };
    report.detail(row("neighbours, nanoflann", flann));
    report.detail(row("neighbours and moments", search));
    report.row(row(std::to_string(k) + " neighbours and a plane for each point, one core", both));
    report.text("K-th distances that differ from nanoflann's: " +
                std::to_string(count_different(moments, kth2, k)));
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    return bench::run_bench(
        {"bench_neighbours",
         "K nearest neighbours and plane fits for every point of a drive, against nanoflann: same points, "
         "same "
         "threads, processor time. The results are compared.",
         [&](bench::Flags& flags) {
             flags.required("DRIVE", arguments.drive, "a directory that citysplat synth made");
             flags.count("K", arguments.k, 1000, "neighbours of each point, itself included");
             flags.count("THREADS", arguments.threads, 1024, "worker threads");
             flags.count("MAX_POINTS", arguments.most_points, 1'000'000'000, "use that many points at most");
         },
         [&](bench::Report& report) { run(arguments, report); }},
        argc, argv);
}
