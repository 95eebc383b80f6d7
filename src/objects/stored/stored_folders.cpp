#include "objects/stored/stored_folders.hpp"

#include "objects/bank.hpp"
#include "objects/snapshots.hpp"

#include <set>

namespace citysplat::objects {

namespace fs = std::filesystem;

namespace {

class StoredFrames final : public FrameSource {
  public:
    explicit StoredFrames(const fs::path& folder)
        : name_(folder.string()), snapshots_(Snapshots::open(folder)) {}

    std::size_t size() const override { return snapshots_.frames().size(); }
    FrameEntry frame(std::size_t i) const override {
        const Snapshot& s = snapshots_.frames()[i];
        const auto& b = s.splats.box;
        return {s.begin_s, s.end_s, s.splats.splats, {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}}, s.objects};
    }
    std::vector<std::size_t> during(double begin_s, double end_s) const override {
        return snapshots_.during(begin_s, end_s);
    }
    SplatTile load(std::size_t i) const override { return snapshots_.load(snapshots_.frames()[i]); }
    std::string name() const override { return name_; }

  private:
    std::string name_;
    Snapshots snapshots_;
};

class StoredBank final : public ObjectSource {
  public:
    explicit StoredBank(const fs::path& folder) : bank_(Bank::open(folder)) {}

    std::optional<std::string> choose(const ObjectWish& wish) const override {
        const BankObject* chosen = objects::choose(bank_.objects(), {.class_name = wish.class_name,
                                                                     .size = wish.size,
                                                                     .azimuths_rad = wish.azimuths_rad,
                                                                     .seed = wish.seed,
                                                                     .track = wish.who});
        if (!chosen) return std::nullopt;
        return chosen->name;
    }
    StoredObject load(const std::string& name) const override {
        const BankObject& object = bank_.find(name);
        return {object.name, object.class_name, object.size, bank_.load(object)};
    }
    std::vector<std::string> classes() const override {
        std::set<std::string> names;
        for (const BankObject& object : bank_.objects()) names.insert(object.class_name);
        return {names.begin(), names.end()};
    }

  private:
    Bank bank_;
};

}  // namespace

FrameSourcePtr StoredFolders::frames(const fs::path& folder) const {
    const fs::path of_city = Snapshots::folder_of(folder);
    return std::make_shared<StoredFrames>(fs::is_directory(of_city) ? of_city : folder);
}

ObjectSourcePtr StoredFolders::objects(const fs::path& folder) const {
    return std::make_shared<StoredBank>(folder);
}

}  // namespace citysplat::objects
