// K nearest neighbours and plane fits for every point: the batched search against nanoflann, same points,
// same threads, processor time. The results are compared.
//   bench_neighbours DRIVE_DIR [K [THREADS [MAX_POINTS]]]
#include "model/trajectory.hpp"
#include "point_store.hpp"
#include "splat/generation/point_cloud.hpp"
#include "splat/search/neighbour_search.hpp"
#include "splat/search/plane_fit.hpp"

#include <nanoflann.hpp>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <numeric>
#include <string>

using namespace citysplat;
using splat::PointCloud;

namespace {

/// Processor time of all threads: what a shared machine does besides does not count.
double cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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

double run_flann(const PointCloud& c, std::size_t k, std::vector<float>& kth2, double& build_s) {
    FlannCloud cloud;
    for (std::size_t i = 0; i < c.size(); ++i)
        for (const std::int32_t v : {c.x[i], c.y[i], c.z[i]}) cloud.xyz.push_back(static_cast<float>(v));
    const double t0 = cpu_s();
    FlannTree tree(3, cloud, nanoflann::KDTreeSingleIndexAdaptorParams(20));
    tree.buildIndex();
    build_s = cpu_s() - t0;
    const double t1 = cpu_s();
    chunks(c.size(), [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> index(k);
        std::vector<float> d2(k);
        for (std::size_t i = begin; i < end; ++i) {
            tree.knnSearch(&cloud.xyz[3 * i], k, index.data(), d2.data());
            kth2[i] = d2[k - 1];
        }
    });
    return cpu_s() - t1;
}

struct BatchedTimes {
    double build_s, search_s;
};

BatchedTimes run_batched(const PointCloud& c, std::size_t k, bool fit, std::vector<splat::Moments>& moments) {
    const double t0 = cpu_s();
    const splat::NeighbourIndex index(c.x, c.y, c.z, c.rank);
    const double build_s = cpu_s() - t0;
    const splat::Reach reach{static_cast<std::int32_t>(k), splat::kMaxReach};
    const std::vector<std::uint8_t> reach_class(c.size(), 0);
    tbb::enumerable_thread_specific<splat::SearchScratch> scratch;
    tbb::enumerable_thread_specific<std::vector<splat::PlaneFit>> fits;
    const double t1 = cpu_s();
    chunks(c.size(), [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> points(end - begin);
        std::iota(points.begin(), points.end(), static_cast<std::uint32_t>(begin));
        const std::span<splat::Moments> out(moments.data() + begin, end - begin);
        find_moments(index, {points, reach_class, {&reach, 1}}, out, scratch.local());
        if (fit) {
            fits.local().resize(end - begin);
            fit_planes(out, fits.local());
        }
    });
    return {build_s, cpu_s() - t1};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: bench_neighbours DRIVE_DIR [K [THREADS [MAX_POINTS]]]\n";
        return 2;
    }
    const std::size_t k = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 40;
    const std::size_t threads = argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 1;
    const std::size_t most = argc > 4 ? static_cast<std::size_t>(std::atoi(argv[4])) : 1'000'000;
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    const std::filesystem::path drive = argv[1];
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(drive))
        if (entry.path().extension() == ".las") files.push_back(entry.path());
    const bench::PointStore store({files.data(), 1}, Trajectory());
    const LatticeBox b = store.bounds();
    tiling::Region region = store.read({b.min_x, b.min_y, b.max_x, b.max_y}, 0);
    if (region.points.size() > most) region.points.resize(most);

    const double t0 = cpu_s();
    const PointCloud c = splat::make_point_cloud(region.frame, region.points, {}, ClassMap());
    const double sort_s = cpu_s() - t0;
    const double n = static_cast<double>(c.size());
    std::printf("%zu points, K = %zu, %zu threads, %s; along the curve in %.3f s (%.1f Mpts/s)\n", c.size(),
                k, threads, std::string(splat::instruction_set()).c_str(), sort_s, n / sort_s / 1e6);
    std::vector<float> kth2(c.size());
    double flann_build = 0;
    const double flann = run_flann(c, k, kth2, flann_build);
    std::vector<splat::Moments> moments(c.size());
    const BatchedTimes search = run_batched(c, k, false, moments);
    const BatchedTimes both = run_batched(c, k, true, moments);
    std::size_t different = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
        const auto found = static_cast<float>(moments[i].reach2);
        if (moments[i].count == static_cast<std::int32_t>(k) && std::abs(found - kth2[i]) > 1e-6f * found)
            ++different;
    }
    const auto line = [&](const char* name, double build_s, double s) {
        std::printf("%-28s index %6.3f s  query %7.3f s  %7.3f Mpts/s per core  %5.1f x nanoflann\n", name,
                    build_s, s, n / s / 1e6, flann / s);
    };
    line("nanoflann, query only", flann_build, flann);
    line("batched, moments", search.build_s, search.search_s);
    line("batched, moments + planes", both.build_s, both.search_s);
    std::printf("K-th distances that differ: %zu\n", different);
}
