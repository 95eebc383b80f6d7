#include "objects/bank.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"
#include "core/math/rng_hd.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace citysplat::objects {

namespace fs = std::filesystem;

namespace {

fs::path index_of(const fs::path& folder) { return folder / "bank.json"; }
fs::path splats_of(const fs::path& folder) { return folder / "splats"; }

/// Whether a bank may be made here: nothing is there, or what a killed writer of a bank left.
bool is_free(const fs::path& folder) {
    if (!fs::exists(folder)) return true;
    if (!fs::is_directory(folder)) return false;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path() != OutputFile::partial_of(index_of(folder)) && entry.path() != splats_of(folder))
            return false;
    return true;
}

void sort_by_name(std::vector<BankObject>& objects) {
    std::sort(objects.begin(), objects.end(),
              [](const BankObject& a, const BankObject& b) { return a.name < b.name; });
}

}  // namespace

bool Bank::is_bank(const fs::path& folder) { return fs::is_regular_file(index_of(folder)); }

Bank Bank::open(const fs::path& folder) {
    if (!is_bank(folder))
        throw ConfigError(folder.string() +
                          ": there is no object bank (no bank.json); citysplat bank build "
                          "makes one");
    Bank bank;
    bank.folder_ = folder;
    bank.objects_ = parse_index(read_text_file(index_of(folder)), index_of(folder).string());
    return bank;
}

const BankObject& Bank::find(std::string_view name) const {
    for (const BankObject& o : objects_)
        if (o.name == name) return o;
    std::string some;
    for (std::size_t i = 0; i < std::min<std::size_t>(objects_.size(), 5); ++i)
        some += (i > 0 ? ", " : "") + objects_[i].name;
    throw UsageError(folder_.string() + ": no object is called " + std::string(name) + "; it has " +
                     std::to_string(objects_.size()) + (some.empty() ? "" : ", such as " + some) +
                     " (citysplat bank list)");
}

SplatTile Bank::load(const BankObject& object) const {
    return SplatFolder(splats_of(folder_)).read(object.splats, "object " + object.name);
}

BankWriter::BankWriter(const fs::path& folder) : folder_(folder) {
    if (!Bank::is_bank(folder) && !is_free(folder))
        throw ConfigError(folder.string() +
                          ": it holds something that is no object bank, and is left alone; "
                          "name a new folder");
    create_directories_durably(folder);
    index_ = std::make_unique<OutputFile>(index_of(folder));
    if (Bank::is_bank(folder)) {
        const Bank bank = Bank::open(folder);
        objects_.assign(bank.objects().begin(), bank.objects().end());
    }
}

BankObject BankWriter::add(BankObject object, const SplatTile& splats) {
    object.splats = SplatFolder(splats_of(folder_)).write(splats, object.points + object.mirrored_points);
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const BankObject& o) { return o.name == object.name; });
    objects_.push_back(object);
    return object;
}

void BankWriter::commit() {
    sort_by_name(objects_);
    index_->writer().text(index_text(objects_));
    index_->commit(true);
}

double score(const BankObject& object, const BankWish& wish) {
    const auto differs = [](double has, double wants) {
        return wants > 0 ? std::fabs(has - wants) / wants : 0.0;
    };
    double total = differs(object.size.length_m, wish.size.length_m) +
                   differs(object.size.width_m, wish.size.width_m) +
                   differs(object.size.height_m, wish.size.height_m);
    // From the level of a car: the lowest elevation.
    double covered = 0, directions = 0;
    const auto look = [&](std::size_t azimuth) {
        covered += object.coverage[coverage_index(azimuth, 0)];
        directions += 1;
    };
    for (const double azimuth_rad : wish.azimuths_rad) {
        const double tens = std::floor(azimuth_rad * exact::kDegreesPerRad / 10 + 0.5);
        const double turns = std::floor(tens / static_cast<double>(kAzimuths));
        look(static_cast<std::size_t>(tens - turns * static_cast<double>(kAzimuths)));
    }
    if (wish.azimuths_rad.empty())
        for (std::size_t a = 0; a < kAzimuths; ++a) look(a);
    return total + 2 * (1 - covered / directions / 100);
}

const BankObject* choose(std::span<const BankObject> objects, const BankWish& wish) {
    constexpr std::size_t kBest = 5;
    struct Candidate {
        double score;
        const BankObject* object;
    };
    std::vector<Candidate> candidates;
    for (const BankObject& o : objects)
        if (wish.class_name.empty() || lower_case(o.class_name) == lower_case(wish.class_name))
            candidates.push_back({score(o, wish), &o});
    if (candidates.empty()) return nullptr;
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score < b.score : a.object->name < b.object->name;
    });
    const Hash128 who = Hasher().number(wish.seed).text(wish.track).finish();
    return candidates[who.low % std::min(kBest, candidates.size())].object;
}

}  // namespace citysplat::objects
