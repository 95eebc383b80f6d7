#include "power/model_disk.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace citysplat::power;

namespace {

using Kind = Survival::Kind;

constexpr std::uint64_t kRoot = 1;

Bytes bytes_of(const std::string& text) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return {data, data + text.size()};
}

Operation created(const std::string& path, std::uint64_t inode) {
    return {.kind = OperationKind::create, .inode = inode, .path = path};
}
Operation made_directory(const std::string& path, std::uint64_t inode) {
    return {.kind = OperationKind::make_directory, .inode = inode, .path = path};
}
Operation written(std::uint64_t inode, std::uint64_t offset, const std::string& text) {
    return {.kind = OperationKind::write, .inode = inode, .offset = offset, .data = bytes_of(text)};
}
Operation truncated(std::uint64_t inode, std::uint64_t size) {
    return {.kind = OperationKind::truncate, .inode = inode, .offset = size};
}
Operation synced(std::uint64_t inode) { return {.kind = OperationKind::sync, .inode = inode}; }
Operation renamed(const std::string& from, const std::string& to) {
    return {.kind = OperationKind::rename, .path = from, .target = to};
}
Operation removed(const std::string& path) { return {.kind = OperationKind::remove, .path = path}; }

/// A disk with the directories left (inode 2) and right (3) and the file left/old (4), all durable.
ModelDisk disk_after(NameModel model, const std::vector<Operation>& operations) {
    const DiskSnapshot snapshot{{{"", kRoot, nullptr},
                                 {"left", 2, nullptr},
                                 {"left/old", 4, std::make_shared<Content>(bytes_of("old"))},
                                 {"right", 3, nullptr}}};
    ModelDisk disk(snapshot, model);
    for (const Operation& operation : operations) disk.apply(operation);
    return disk;
}

/// "left/old=old right/": files with what they hold, and directories that are empty.
std::string text_of(const DiskTree& tree) {
    std::string text;
    for (const auto& [path, content] : tree) {
        const auto next = tree.upper_bound(path);
        if (!content && next != tree.end() && next->first.starts_with(path + "/")) continue;
        text += text.empty() ? "" : " ";
        text += path;
        if (content)
            text += "=" +
                    std::string(reinterpret_cast<const char*>(content->bytes.data()), content->bytes.size());
        else
            text += "/";
    }
    return text;
}

std::string cut(const ModelDisk& disk, Kind kind) { return text_of(disk.after_cut({kind, 0})); }

std::set<std::string> mixtures(const ModelDisk& disk, std::uint64_t seeds = 300) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < seeds; ++seed)
        seen.insert(text_of(disk.after_cut({Kind::mixture, seed})));
    return seen;
}

using Texts = std::set<std::string>;

}  // namespace

TEST_CASE("data is durable after an fsync of its file and not before") {
    for (const NameModel model : {NameModel::ordered, NameModel::unordered}) {
        const std::vector<Operation> overwrite{written(4, 0, "new")};
        ModelDisk disk = disk_after(model, overwrite);
        CHECK(text_of(disk.live()) == "left/old=new right/");
        CHECK(cut(disk, Kind::nothing) == "left/old=old right/");
        CHECK(cut(disk, Kind::names) == "left/old=old right/");
        CHECK(cut(disk, Kind::data) == "left/old=new right/");
        CHECK(cut(disk, Kind::everything) == "left/old=new right/");
        disk.apply(synced(4));
        CHECK(mixtures(disk) == Texts{"left/old=new right/"});
        CHECK(cut(disk, Kind::nothing) == "left/old=new right/");
    }
}

TEST_CASE("a name that survives without its data is an empty file") {
    const ModelDisk disk = disk_after(NameModel::ordered, {created("left/new", 5), written(5, 0, "new")});
    CHECK(cut(disk, Kind::names) == "left/new= left/old=old right/");
    CHECK(cut(disk, Kind::data) == "left/old=old right/");
}

TEST_CASE("a truncation is unsynced data like any other") {
    const ModelDisk disk = disk_after(NameModel::unordered, {truncated(4, 1)});
    CHECK(mixtures(disk) == Texts{"left/old=o right/", "left/old=old right/"});
    CHECK(text_of(disk_after(NameModel::unordered, {truncated(4, 1), written(4, 1, "k")}).live()) ==
          "left/old=ok right/");
}

TEST_CASE("an ordered disk loses names from the end only, and any fsync commits those before it") {
    ModelDisk disk =
        disk_after(NameModel::ordered, {created("1", 11), created("2", 12), renamed("1", "3"), removed("2")});
    const std::string old = " left/old=old right/";
    CHECK(mixtures(disk) ==
          Texts{"left/old=old right/", "1=" + old, "1= 2=" + old, "2= 3=" + old, "3=" + old});
    disk.apply(synced(4));
    CHECK(mixtures(disk) == Texts{"3=" + old});
}

TEST_CASE("an unordered disk keeps any subset of the names until their directory is synced") {
    ModelDisk disk = disk_after(NameModel::unordered,
                                {created("right/1", 11), created("right/2", 12), removed("left/old")});
    Texts subsets;
    for (const char* old : {"left/", "left/old=old"})
        for (const char* one : {"", " right/1="})
            for (const char* two : {"", " right/2="})
                subsets.insert(old + (*one || *two ? std::string(one) + two : " right/"));
    CHECK(mixtures(disk) == subsets);
    disk.apply(synced(11));  // the file, not its directory
    CHECK(mixtures(disk) == subsets);
    disk.apply(synced(3));
    CHECK(mixtures(disk) == Texts{"left/ right/1= right/2=", "left/old=old right/1= right/2="});
    disk.apply(synced(2));
    CHECK(cut(disk, Kind::nothing) == "left/ right/1= right/2=");
}

TEST_CASE("a rename within a directory is whole or lost, also over another file") {
    for (const NameModel model : {NameModel::ordered, NameModel::unordered}) {
        const ModelDisk disk = disk_after(model, {created("left/new", 5), written(5, 0, "new"), synced(5),
                                                  synced(2), renamed("left/new", "left/old")});
        CHECK(mixtures(disk) == Texts{"left/new=new left/old=old right/", "left/old=new right/"});
    }
}

TEST_CASE("a rename into another directory needs an fsync of both on an unordered disk") {
    const auto moved = [](NameModel model) { return disk_after(model, {renamed("left/old", "right/old")}); };
    CHECK(mixtures(moved(NameModel::ordered)) == Texts{"left/old=old right/", "left/ right/old=old"});
    ModelDisk disk = moved(NameModel::unordered);
    CHECK(mixtures(disk) ==
          Texts{"left/old=old right/", "left/ right/old=old", "left/old=old right/old=old", "left/ right/"});
    disk.apply(synced(3));
    CHECK(mixtures(disk) == Texts{"left/ right/old=old", "left/old=old right/old=old"});
    disk.apply(synced(2));
    CHECK(mixtures(disk) == Texts{"left/ right/old=old"});
}

TEST_CASE("a new directory that is lost takes everything in it along, synced or not") {
    ModelDisk disk = disk_after(NameModel::unordered, {made_directory("new", 5), created("new/file", 6),
                                                       written(6, 0, "safe"), synced(6), synced(5)});
    CHECK(mixtures(disk) == Texts{"left/old=old right/", "left/old=old new/file=safe right/"});
    disk.apply(renamed("new", "right/new"));
    disk.apply(synced(3));
    CHECK(cut(disk, Kind::nothing) == "left/old=old right/new/file=safe");
}

TEST_CASE("a torn write keeps whole sectors of 512 bytes, each of which is old, new or zero") {
    const std::string before(2000, 'a'), now(1800, 'b');
    ModelDisk disk = disk_after(NameModel::ordered, {written(4, 0, before), synced(4), written(4, 100, now)});
    bool torn = false, zeroed = false;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Bytes bytes = disk.after_cut({Kind::mixture, seed}).at("left/old")->bytes;
        REQUIRE(bytes.size() == 2000);
        std::set<char> kinds;
        bool whole_sectors = true;
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            const bool touched = at >= 100 && at < 1900;
            const std::size_t first = std::max<std::size_t>(100, at / 512 * 512);
            whole_sectors &= bytes[at] == (touched ? bytes[first] : std::byte{'a'});
            if (touched) kinds.insert(static_cast<char>(bytes[at]));
        }
        REQUIRE(whole_sectors);
        torn |= kinds == std::set<char>{'a', 'b'};
        zeroed |= kinds == std::set<char>{'\0'};
    }
    CHECK(torn);
    CHECK(zeroed);
}

TEST_CASE("a file that was removed while open is written to without a name") {
    ModelDisk disk =
        disk_after(NameModel::ordered, {removed("left/old"), written(4, 0, "unseen"), synced(4)});
    CHECK(text_of(disk.live()) == "left/ right/");
    // The system gives its number to a new file.
    disk.apply(created("right/next", 4));
    disk.apply(written(4, 0, "next"));
    CHECK(text_of(disk.live()) == "left/ right/next=next");
}

TEST_CASE("a directory with other inodes can take over") {
    ModelDisk disk = disk_after(NameModel::unordered, {created("right/new", 5)});
    disk.take_inodes_of({{{"", 21, nullptr},
                          {"left", 22, nullptr},
                          {"left/old", 24, std::make_shared<Content>(bytes_of("old"))},
                          {"right", 23, nullptr},
                          {"right/new", 25, std::make_shared<Content>(Bytes{})}}});
    disk.apply(written(25, 0, "x"));
    CHECK(text_of(disk.live()) == "left/old=old right/new=x");
    CHECK(cut(disk, Kind::nothing) == "left/old=old right/");  // still not synced
    CHECK_THROWS(disk.apply(written(5, 0, "x")));
}

TEST_CASE("an operation that cannot be played back is an error") {
    ModelDisk disk = disk_after(NameModel::ordered, {});
    CHECK_THROWS(disk.apply({.kind = OperationKind::unknown, .path = "mmap"}));
    CHECK_THROWS(disk.apply(written(99, 0, "of a file that nobody made")));
    CHECK_THROWS(disk.apply(removed("left/nothing")));
    CHECK_THROWS(disk.apply(created("nowhere/file", 7)));
}
