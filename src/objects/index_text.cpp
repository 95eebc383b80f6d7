#include "core/error.hpp"
#include "core/hash.hpp"
#include "objects/bank.hpp"
#include "objects/snapshots.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace citysplat::objects {

namespace {

using nlohmann::json;

// Words on disk: never change.
constexpr const char* kBankFormat = "citysplat object bank";
constexpr const char* kSnapshotFormat = "citysplat snapshots";
constexpr int kVersion = 1;

/// The keys of a payload, added to those of its owner.
json with_payload(json words, const StoredSplats& stored) {
    words["splats"] = stored.splats;
    words["bytes"] = stored.bytes;
    words["box_m"] = stored.box;
    words["payload"] = stored.name.hex();
    return words;
}

/// A whole number of the type; the library would take what is left of a larger one.
template <class Whole>
Whole whole(const json& j) {
    if (!j.is_number_unsigned() || j.get<std::uint64_t>() > std::numeric_limits<Whole>::max())
        throw std::invalid_argument(j.dump() + " is not a whole number that can stand there");
    return j.get<Whole>();
}

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

StoredSplats payload_from(const json& j) {
    const auto name = Hash128::from_hex(j.at("payload").get<std::string>());
    require(name.has_value(), "a payload has no name");
    const auto box = j.at("box_m").get<std::array<double, 6>>();
    for (std::size_t a = 0; a < 3; ++a) require(box[a] <= box[a + 3], "the box of a payload is turned over");
    return {*name, whole<std::uint64_t>(j.at("splats")), whole<std::uint64_t>(j.at("bytes")), box};
}

json to_json(const BankObject& o) {
    json words{{"name", o.name},
               {"class", o.class_name},
               {"length_m", o.size.length_m},
               {"width_m", o.size.width_m},
               {"height_m", o.size.height_m},
               {"label", o.label},
               {"source", o.source},
               {"track", o.track},
               {"begin_s", o.begin_s},
               {"end_s", o.end_s},
               {"frames", o.frames},
               {"looks", o.looks},
               {"points", o.points},
               {"mirrored_points", o.mirrored_points},
               {"thickness_m", o.thickness_m},
               {"thickness_by_boxes_m", o.thickness_by_boxes_m},
               {"coverage_percent", o.coverage}};
    return with_payload(std::move(words), o.splats);
}

BankObject object_from(const json& j) {
    BankObject o;
    o.name = j.at("name").get<std::string>();
    o.class_name = j.at("class").get<std::string>();
    o.size = {j.at("length_m").get<double>(), j.at("width_m").get<double>(), j.at("height_m").get<double>()};
    for (const double extent : {o.size.length_m, o.size.width_m, o.size.height_m})
        require(extent > 0, "an object has no size");
    o.label = whole<std::uint16_t>(j.at("label"));
    o.source = j.at("source").get<std::string>();
    o.track = j.at("track").get<std::string>();
    o.begin_s = j.at("begin_s").get<double>();
    o.end_s = j.at("end_s").get<double>();
    require(o.begin_s <= o.end_s, "an object was seen before it was seen first");
    o.frames = whole<std::uint32_t>(j.at("frames"));
    o.looks = whole<std::uint32_t>(j.at("looks"));
    o.points = whole<std::uint64_t>(j.at("points"));
    o.mirrored_points = whole<std::uint64_t>(j.at("mirrored_points"));
    o.thickness_m = j.at("thickness_m").get<double>();
    o.thickness_by_boxes_m = j.at("thickness_by_boxes_m").get<double>();
    const json& coverage = j.at("coverage_percent");
    require(coverage.size() == o.coverage.size(), "a coverage is not that of all directions");
    for (std::size_t i = 0; i < o.coverage.size(); ++i) {
        o.coverage[i] = whole<std::uint8_t>(coverage.at(i));
        require(o.coverage[i] <= 100, "a coverage is more than everything");
    }
    o.splats = payload_from(j);
    return o;
}

/// Names of tracks may be anything; what is not UTF-8 in them becomes a question mark in a rhombus.
std::string text_of(const json& words, int indent) {
    return words.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string checksum_of(const json& objects) {
    const std::string text = text_of(objects, -1);
    return hash_bytes(std::as_bytes(std::span(text.data(), text.size()))).hex();
}

json to_json(const Snapshot& s) {
    json words{{"begin_s", s.begin_s}, {"end_s", s.end_s}, {"source", s.source}, {"points", s.points}};
    if (!s.objects.empty()) words["objects"] = s.objects;
    return with_payload(std::move(words), s.splats);
}

Snapshot snapshot_from(const json& j) {
    Snapshot s{j.at("begin_s").get<double>(),
               j.at("end_s").get<double>(),
               j.at("source").get<std::string>(),
               whole<std::uint64_t>(j.at("points")),
               {},
               payload_from(j)};
    if (j.contains("objects"))
        for (const json& object : j.at("objects")) s.objects.push_back(whole<std::uint32_t>(object));
    require(s.begin_s <= s.end_s, "a frame ends before it begins");
    require(s.objects.size() <= 255, "a frame has more objects than a byte counts");
    return s;
}

/// An index is a list under a name, with its format, version and checksum.
struct IndexKind {
    const char* format;
    const char* list;
};
constexpr IndexKind kBank{kBankFormat, "objects"}, kSnapshots{kSnapshotFormat, "frames"};

template <class Item>
std::string text_of_index(const IndexKind& kind, std::span<const Item> items) {
    json list = json::array();
    for (const Item& item : items) list.push_back(to_json(item));
    const json index{
        {"format", kind.format}, {"version", kVersion}, {"checksum", checksum_of(list)}, {kind.list, list}};
    return text_of(index, 1) + "\n";
}

/// Lets pass what is as flat as an index is: the JSON library writes and compares by recursion.
bool is_flat(int depth, json::parse_event_t, const json&) {
    constexpr int kDeepest = 16;
    if (depth > kDeepest) throw std::invalid_argument("it is nested deeper than any index");
    return true;
}

template <class FromJson>
auto parsed_index(const IndexKind& kind, std::string_view text, const std::string& origin,
                  const FromJson& from_json) {
    const auto damaged = [&](const std::string& why) -> CorruptionError {
        return CorruptionError(origin + ": " + why + "; restore it, or make it again");
    };
    try {
        const json index = json::parse(text, is_flat);
        if (!index.is_object() || index.value("format", "") != kind.format)
            throw ConfigError(origin + ": it is not an index of the kind \"" + kind.format + "\"");
        if (index.at("version") != kVersion)
            throw ConfigError(origin + ": its version " + index.at("version").dump() +
                              " is not the version " + std::to_string(kVersion) + " of this citysplat");
        const json& list = index.at(kind.list);
        if (index.at("checksum") != checksum_of(list)) throw damaged("its checksum does not fit it");
        std::vector<decltype(from_json(list))> items;
        for (const json& j : list) items.push_back(from_json(j));
        return items;
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {  // of the JSON library, or of what it calls
        throw damaged(std::string("it is not whole (") + e.what() + ")");
    }
}

}  // namespace

std::string index_text(std::span<const BankObject> objects) { return text_of_index(kBank, objects); }

std::vector<BankObject> parse_index(std::string_view text, const std::string& origin) {
    return parsed_index(kBank, text, origin, object_from);
}

std::string snapshot_index_text(std::span<const Snapshot> frames) {
    return text_of_index(kSnapshots, frames);
}

std::vector<Snapshot> parse_snapshot_index(std::string_view text, const std::string& origin) {
    return parsed_index(kSnapshots, text, origin, snapshot_from);
}

}  // namespace citysplat::objects
