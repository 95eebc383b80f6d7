#include "tiling/care/generations.hpp"

#include "core/error.hpp"
#include "tiling/store/city_lock.hpp"
#include "tiling/store/generation_record.hpp"
#include "tiling/store/object_store.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <sstream>

namespace citysplat::tiling {

namespace {

constexpr std::size_t kLongestTag = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Four digits and a dash: what begins so is a date, well formed or not, and no tag.
bool looks_like_date(const std::string& text) {
    return text.size() > 4 && std::all_of(text.begin(), text.begin() + 4, is_digit) && text[4] == '-';
}

/// The numbers of a text of this form, in which a digit stands for a digit and all else for itself.
std::optional<std::vector<int>> numbers_in(const std::string& text, std::string_view form) {
    if (text.size() != form.size()) return std::nullopt;
    std::vector<int> numbers;
    for (std::size_t i = 0; i < form.size(); ++i) {
        if (is_digit(form[i]) != is_digit(text[i]) || (!is_digit(form[i]) && form[i] != text[i]))
            return std::nullopt;
        if (!is_digit(text[i])) continue;
        if (i == 0 || !is_digit(form[i - 1])) numbers.push_back(0);
        numbers.back() = 10 * numbers.back() + (text[i] - '0');
    }
    return numbers;
}

/// The first second (Unix time) after the day, minute or second that the text names.
std::optional<std::int64_t> end_of_date(const std::string& text) {
    struct Form {
        const char* form;
        std::int64_t lasts_s;
    };
    constexpr std::array<Form, 6> kForms{{{"0000-00-00", 86'400},
                                          {"0000-00-00T00:00", 60},
                                          {"0000-00-00T00:00Z", 60},
                                          {"0000-00-00 00:00", 60},
                                          {"0000-00-00T00:00:00", 1},
                                          {"0000-00-00T00:00:00Z", 1}}};
    for (const auto& [form, lasts_s] : kForms) {
        const auto n = numbers_in(text, form);
        if (!n) continue;
        using namespace std::chrono;
        const year_month_day day(year((*n)[0]), month(static_cast<unsigned>((*n)[1])),
                                 std::chrono::day(static_cast<unsigned>((*n)[2])));
        const int h = n->size() > 3 ? (*n)[3] : 0, m = n->size() > 4 ? (*n)[4] : 0,
                  s = n->size() > 5 ? (*n)[5] : 0;
        if (!day.ok() || h > 23 || m > 59 || s > 59) return std::nullopt;
        const auto begin = sys_days(day) + hours(h) + minutes(m) + seconds(s);
        return duration_cast<seconds>(begin.time_since_epoch()).count() + lasts_s;
    }
    return std::nullopt;
}

/// Of several generations that say they have the tag (a move that was interrupted) the one that was given it
/// last.
const GenerationRow* owner_of(const std::vector<GenerationRow>& history, const std::string& tag) {
    const GenerationRow* owner = nullptr;
    for (const GenerationRow& row : history) {
        const auto tags = tags_of(row);
        if (std::binary_search(tags.begin(), tags.end(), tag) && (!owner || row.revision > owner->revision))
            owner = &row;
    }
    return owner;
}

std::string known_tags(const std::vector<GenerationRow>& history) {
    std::string text;
    for (const GenerationRow& row : history)
        for (const std::string& tag : tags_of(row)) text += (text.empty() ? "" : ", ") + tag;
    return text.empty() ? "no generation has a tag" : "there are " + text;
}

GenerationRow by_date(const std::vector<GenerationRow>& history, const std::string& name) {
    const auto end = end_of_date(name);
    if (!end)
        throw UsageError("\"" + name +
                         "\" is no date; write 2026-11-16, 2026-11-16T03:00Z or 2026-11-16T03:00:00Z");
    for (auto row = history.rbegin(); row != history.rend(); ++row)
        if (row->created_s < *end) return *row;
    throw UsageError("there was no generation on " + name +
                     ", or it was forgotten; citysplat status --history lists those that are left");
}

std::string joined(const std::vector<std::string>& tags) {
    std::string text;
    for (const std::string& tag : tags) text += (text.empty() ? "" : " ") + tag;
    return text;
}

/// An open city of which generations get other names.
class Tagger {
  public:
    Tagger(const std::filesystem::path& city, const std::string& verb)
        : store_(CityPaths(city)), lock_(lock(store_.paths(), verb)) {
        store_.create_layout();
        catalog_.emplace(Catalog::open_to_write(store_.paths().catalog()));
    }
    Catalog& catalog() { return *catalog_; }

    void add(const GenerationRow& row, const std::string& tag) {
        auto tags = tags_of(row);
        tags.push_back(tag);
        std::sort(tags.begin(), tags.end());
        tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
        set(row, tags);
    }
    /// From every generation but this one.
    void remove_elsewhere(const std::string& tag, std::int64_t but) {
        for (const GenerationRow& row : catalog_->history()) {
            auto tags = tags_of(row);
            if (row.id != but && std::erase(tags, tag) > 0) set(row, tags);
        }
    }

  private:
    static CityLock lock(const CityPaths& paths, const std::string& verb) {
        require_city(paths);
        return CityLock::builder(paths, verb);
    }
    void set(const GenerationRow& row, const std::vector<std::string>& tags) {
        check_rows(*catalog_, store_, row);
        set_tags(*catalog_, store_, row, joined(tags));
    }

    ObjectStore store_;
    CityLock lock_;
    std::optional<Catalog> catalog_;
};

}  // namespace

std::vector<std::string> tags_of(const GenerationRow& generation) {
    std::istringstream in(generation.tags);
    std::vector<std::string> tags;
    for (std::string tag; in >> tag;) tags.push_back(tag);
    return tags;
}

void check_tag(const std::string& tag) {
    const auto is_allowed = [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
               c == '_';
    };
    if (tag.empty() || tag.size() > kLongestTag || !std::all_of(tag.begin(), tag.end(), is_allowed))
        throw UsageError("\"" + tag + "\" cannot be a tag: write 1 to " + std::to_string(kLongestTag) +
                         " letters, digits, dots, dashes and underscores");
    if (is_number(tag) || looks_like_date(tag) || tag == "latest" || tag[0] == '-')
        throw UsageError("\"" + tag +
                         "\" cannot be a tag: it would be taken for a number, a date or a word of its own");
}

GenerationRow find_generation(Catalog& catalog, const std::string& name) {
    const auto history = catalog.history();
    if (history.empty()) throw ConfigError("nothing has been built yet");
    if (name == "latest") return history.back();
    if (is_number(name)) {
        std::int64_t id = 0;
        std::from_chars(name.data(), name.data() + name.size(), id);
        for (const GenerationRow& row : history)
            if (row.id == id) return row;
        throw UsageError("there is no generation " + name + "; citysplat status --history lists them");
    }
    if (looks_like_date(name)) return by_date(history, name);
    if (const GenerationRow* row = owner_of(history, name)) return *row;
    throw UsageError("no generation has the tag \"" + name + "\" (" + known_tags(history) + ")");
}

std::optional<std::int64_t> generation_number(const std::filesystem::path& city, const std::string& name) {
    if (name.empty()) return std::nullopt;
    Catalog catalog = Catalog::open_to_read(CityPaths(city).catalog());
    return find_generation(catalog, name).id;
}

TagReport set_tag(const std::filesystem::path& city, const std::string& tag, const std::string& generation,
                  bool move) {
    check_tag(tag);
    Tagger tagger(city, "tag");
    const GenerationRow row = find_generation(tagger.catalog(), generation.empty() ? "latest" : generation);
    const auto history = tagger.catalog().history();
    const GenerationRow* owner = owner_of(history, tag);
    if (owner && owner->id != row.id && !move)
        throw UsageError("generation " + std::to_string(owner->id) + " has the tag \"" + tag +
                         "\"; --move gives it to generation " + std::to_string(row.id));
    // First the new one: a cut between the two leaves the tag with both, and the later one counts.
    if (!owner || owner->id != row.id) tagger.add(row, tag);
    tagger.remove_elsewhere(tag, row.id);
    return {row.id, owner ? owner->id : 0};
}

TagReport remove_tag(const std::filesystem::path& city, const std::string& tag) {
    Tagger tagger(city, "tag");
    const auto history = tagger.catalog().history();
    const GenerationRow* owner = owner_of(history, tag);
    if (!owner) throw UsageError("no generation has the tag \"" + tag + "\" (" + known_tags(history) + ")");
    const TagReport report{owner->id, owner->id};
    tagger.remove_elsewhere(tag, 0);
    return report;
}

}  // namespace citysplat::tiling
