#include "core/error.hpp"
#include "tiling/care/city_care.hpp"
#include "tiling/catalog_mutations.hpp"
#include "tiling/city_checks.hpp"
#include "tiling/store/city_reader.hpp"
#include "tiling/toy_city.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace citysplat;
using namespace citysplat::test;
using namespace citysplat::tiling;

namespace fs = std::filesystem;

namespace {

/// Three generations: two drives, one with a trajectory; one of them replaced by another; the way back.
struct City {
    Drive d;
    fs::path trial = d.dir / "trial";

    City() {
        d.put("a.cloud", street(1, 1000, 2000, 40, 2));
        d.put("b.cloud", street(2, 1020, 2010, 30, 2));
        BuildOptions options = d.options();
        options.inputs[0].trajectory = d.dir / "drive.tum";
        d.maker.build(d.city, options);
        d.put("c.cloud", street(3, 1030, 2000, 30, 2));
        d.files.erase("b.cloud");
        options = d.options();
        options.remove = {d.path("b.cloud")};
        d.maker.build(d.city, options);
        REQUIRE(roll_back(d.city, {}) == 3);
        // Objects never change, so that copies of the city can share them; catalogs do.
        fs::copy(d.city, trial, fs::copy_options::recursive | fs::copy_options::create_hard_links);
    }

    CityPaths paths() const { return CityPaths(trial); }

    /// The city as it was. False when an object had disappeared.
    bool reset() const {
        fs::remove(paths().catalog());
        fs::copy_file(CityPaths(d.city).catalog(), paths().catalog());
        bool whole = true;
        ObjectStore(CityPaths(d.city)).for_each([&](const Hash128& object, std::uint64_t) {
            if (fs::exists(paths().object(object))) return;
            whole = false;
            fs::create_hard_link(CityPaths(d.city).object(object), paths().object(object));
        });
        return whole;
    }
};

/// Who found out about a changed catalog.
enum class Found { by_opening, by_verify, by_nobody };

Found find_out(const fs::path& city) {
    try {
        Catalog catalog = Catalog::open_to_read(CityPaths(city).catalog());
        const CityReader latest(city);
    } catch (const Error&) {
        return Found::by_opening;
    }
    CancelToken cancel;
    Progress progress;
    try {
        const VerifyReport report = verify_city(city, true, cancel, progress);
        // A generation without its row is a note: a publish that was cut off looks the same.
        return report.corrupt.empty() && report.notes.empty() ? Found::by_nobody : Found::by_verify;
    } catch (const Error&) {
        return Found::by_verify;
    }
}

/// Tries every `stride`-th mutation.
void try_mutations(std::size_t stride) {
    const City city;
    city.reset();
    REQUIRE(find_out(city.trial) == Found::by_nobody);
    std::map<Found, int> found;
    const auto mutations = catalog_mutations(city.paths().catalog());
    for (std::size_t i = 0; i < mutations.size(); i += stride) {
        if (!mutate(city.paths().catalog(), mutations[i])) {
            city.reset();
            continue;
        }
        const Found by = find_out(city.trial);
        ++found[by];
        if (by == Found::by_nobody) FAIL_CHECK("nobody noticed: " << mutations[i].what);
        if (!city.reset()) FAIL_CHECK("objects were removed because of the catalog: " << mutations[i].what);
    }
    const int tried = found[Found::by_opening] + found[Found::by_verify] + found[Found::by_nobody];
    CAPTURE(mutations.size(), tried, found[Found::by_opening], found[Found::by_verify]);
    CHECK(tried >= 500);
    CHECK(found[Found::by_nobody] == 0);
}

}  // namespace

TEST_CASE("a changed row of a catalog is refused, or verify names it") { try_mutations(3); }

TEST_CASE("no changed row of a catalog goes unnoticed", "[slow]") { try_mutations(1); }
