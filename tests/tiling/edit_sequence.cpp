#include "tiling/edit_sequence.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "tiling/build/plan_folder.hpp"
#include "tiling/build/publisher.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

namespace citysplat::test {

using namespace tiling;
namespace fs = std::filesystem;

namespace {

/// What the city must be: the same for every generation that says the same.
struct Truth {
    Hash128 digest;
    std::uint64_t splats = 0;
    std::map<std::string, std::vector<CloudPoint>> files;
    std::uint64_t removed = 0;  ///< points that were seen through
};

class Sequence {
  public:
    Sequence(const CityMaker& maker, std::uint64_t seed) : d_(maker), seed_(seed) {
        d_.put("a.cloud", maker.street(seed, 1000, 2000, 60));
        d_.put("b.cloud", maker.street(seed + 1, 1040, 2010, 50));
    }

    void step(int number) {
        key_ = rng::key(seed_, static_cast<std::uint64_t>(number));
        INFO("seed " << seed_ << ", step " << number);
        if (number > 0) random_edit(d_, rng::key(key_, 99));
        BuildOptions options = d_.options();
        forget_other_inputs(options);
        choose_work(options);
        build(options);
        check_against_clean(options);
        if (pick(0, 4) == 0) collect();
        if (pick(1, 5) == 0) roll_back_one();
        if (pick(2, 4) == 0) repair();
        check_whole();
    }

    const SequenceReport& report() const { return report_; }

  private:
    std::uint64_t pick(std::uint64_t which, std::uint64_t n) const { return rng::bits(key_, which) % n; }

    /// Whatever the city has that is not an input any more: removed here, renamed, or back by a rollback.
    void forget_other_inputs(BuildOptions& options) const {
        if (!CityPaths(d_.city).is_city()) return;
        Catalog catalog = Catalog::open_to_read(CityPaths(d_.city).catalog());
        const auto latest = catalog.latest();
        if (!latest) return;
        for (const InputRow& input : catalog.inputs(latest->id))
            if (!d_.files.contains(fs::path(input.path).filename().string()))
                options.remove.emplace_back(input.path);
    }

    void choose_work(BuildOptions& options) {
        constexpr std::array<std::int64_t, 4> kSizes{8, 16, 32, 64};
        if (pick(10, 2) == 0) {
            tile_m_ = kSizes[pick(11, kSizes.size())];
            ++report_.resized;
        }
        options.tile_size_m = tile_m_;
        options.threads = 1 + static_cast<int>(pick(12, 2));
        if (pick(13, 2) == 0) {
            options.most_tile_points = 200 + pick(14, 2000);
            ++report_.divided;
        }
        if (pick(15, 3) == 0) options.memory_bytes = std::uint64_t{1} << (20 + pick(16, 8));
    }

    void build(const BuildOptions& options) {
        ++report_.builds;
        if (pick(20, 3) == 0) {
            build_shards(options, 1 + static_cast<std::uint32_t>(pick(21, 3)));
            return;
        }
        const BuildReport built = d_.maker.build(d_.city, options);
        if (!means_) means_ = built.calibration;
    }

    void build_shards(const BuildOptions& options, std::uint32_t n) {
        ++report_.sharded;
        const std::uint32_t first = 1 + static_cast<std::uint32_t>(pick(22, n));
        const auto work = [&] { static_cast<void>(d_.maker.work_as({first, n}, d_.city, options)); };
        work();
        std::vector<fs::path> receipts;
        if (const auto plan = name_of_open_plan(CityPaths(d_.city)))
            for (const auto& entry :
                 fs::directory_iterator(CityPaths(d_.city).plans() / plan->hex() / "done"))
                receipts.push_back(entry.path());
        switch (pick(23, 4)) {
            case 0:  // a receipt is lost: publish waits for its tiles
                if (receipts.empty()) break;
                fs::remove(receipts[0]);
                CHECK_THROWS_AS(publish_plan(d_.city), BusyError);
                work();
                ++report_.shares_lost;
                break;
            case 1:  // a receipt stands in the place of another
                if (receipts.size() < 2) break;
                fs::copy_file(receipts[0], receipts[1], fs::copy_options::overwrite_existing);
                CHECK_THROWS_AS(publish_plan(d_.city), BusyError);
                work();
                ++report_.shares_repeated;
                break;
            case 2:  // somebody works though nothing is left
                work();
                break;
            default:
                break;
        }
        publish_plan(d_.city);
        if (!means_) means_ = CityReader(d_.city).generation().calibration;
    }

    void check_against_clean(const BuildOptions& options) {
        BuildOptions clean_options = options;
        clean_options.remove.clear();
        const fs::path clean = d_.dir / "clean";
        fs::remove_all(clean);
        const BuildReport built = d_.maker.build(clean, clean_options, means_);
        truth_ = {built.digest, built.splats, d_.files, built.removed};
        report_.removed += built.removed;
        CHECK(built.calibration == CityReader(d_.city).generation().calibration);
        truths_[CityReader(d_.city).generation().id] = truth_;
    }

    void collect() {
        collect_garbage(d_.city, Retention::newest(1 + pick(30, 2)), false);
        ++report_.collected;
    }

    void roll_back_one() {
        Catalog catalog = Catalog::open_to_read(CityPaths(d_.city).catalog());
        const auto history = catalog.history();
        if (history.size() < 2) return;
        const std::int64_t to = history[pick(40, history.size() - 1)].id;
        const std::int64_t id = roll_back(d_.city, to);
        truth_ = truths_.at(to);
        truths_[id] = truth_;
        tile_m_ = CityReader(d_.city).generation().tile_size_m;
        ++report_.rolled_back;
    }

    void repair() {
        if (pick(50, 2) == 0) fs::remove(CityPaths(d_.city).catalog());
        const std::size_t generations = truths_.size();
        const RepairReport repaired = repair_city(d_.city, CancelToken());
        CHECK(repaired.lost_inputs.empty());
        CHECK(repaired.generations <= generations);
        ++report_.repaired;
    }

    /// The latest generation is the truth, tile by tile, and nothing in the city is damaged.
    void check_whole() const {
        const CityReader reader(d_.city);
        REQUIRE(reader.generation().digest == truth_.digest);
        REQUIRE(reader.generation().splats == truth_.splats);
        std::uint64_t removed = 0;
        for (const ProductRow& tile :
             Catalog::open_to_read(CityPaths(d_.city).catalog()).tiles(reader.generation().id))
            removed += tile.removed;
        REQUIRE(removed == truth_.removed);
        Hash128 digest;
        std::uint64_t splats = 0;
        for (std::size_t i = 0; i < reader.tiles().size(); ++i) {
            const SplatTile tile = reader.load(i);
            digest += tile.digest();
            splats += tile.size();
        }
        REQUIRE(digest == truth_.digest);
        REQUIRE(splats == truth_.splats);
        CancelToken cancel;
        Progress progress;
        const VerifyReport verified = verify_city(d_.city, true, cancel, progress);
        for (const Damage& damage : verified.corrupt) FAIL_CHECK(damage.what << " " << damage.problem);
        REQUIRE(verified.corrupt.empty());
    }

    Drive d_;
    std::uint64_t seed_, key_ = 0;
    std::int64_t tile_m_ = 16;
    std::optional<Calibration> means_;
    Truth truth_;
    std::map<std::int64_t, Truth> truths_;  ///< by generation
    SequenceReport report_;
};

}  // namespace

SequenceReport& SequenceReport::operator+=(const SequenceReport& o) {
    builds += o.builds;
    resized += o.resized;
    divided += o.divided;
    sharded += o.sharded;
    shares_lost += o.shares_lost;
    shares_repeated += o.shares_repeated;
    collected += o.collected;
    rolled_back += o.rolled_back;
    repaired += o.repaired;
    removed += o.removed;
    return *this;
}

SequenceReport check_sequence(const CityMaker& maker, std::uint64_t seed, int steps) {
    Sequence sequence(maker, seed);
    for (int i = 0; i < steps; ++i) sequence.step(i);
    return sequence.report();
}

}  // namespace citysplat::test
