#pragma once

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/toml_text.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

/// A table of a TOML file that knows where it is and which keys were asked for. For .cpp files only.
class Section {
  public:
    Section(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

    bool has(std::string_view key) const { return table_.contains(key); }
    const std::string& where() const { return where_; }

    /// The fallback need not be in the range.
    double number(std::string_view key, const NumberRange& range, std::optional<double> fallback = {}) {
        const auto* node = get(key);
        if (node) return checked(*node, key, range);
        if (!fallback) fail(key, "is missing");
        return *fallback;
    }
    /// Requires high <= 2⁵³.
    std::uint64_t whole(std::string_view key, std::uint64_t low, std::uint64_t high,
                        std::optional<double> fallback = {}) {
        const NumberRange range{static_cast<double>(low), static_cast<double>(high)};
        const auto* node = get(key);
        if (!node && !fallback) fail(key, "is missing");
        const double v = node ? checked(*node, key, range, "a whole number") : *fallback;
        if (v != std::floor(v)) refuse(key, v, range, "a whole number");
        return static_cast<std::uint64_t>(v);
    }
    std::uint32_t count(std::string_view key, std::optional<double> fallback = {}) {
        return static_cast<std::uint32_t>(whole(key, 1, 10'000'000, fallback));
    }
    bool flag(std::string_view key, bool fallback) {
        const auto* node = get(key);
        if (!node) return fallback;
        if (!node->is_boolean()) fail(key, "must be true or false");
        return node->as_boolean()->get();
    }
    std::string text(std::string_view key, std::optional<std::string> fallback = {}) {
        const auto* node = get(key);
        if (!node && fallback) return *fallback;
        const auto v = node ? node->value<std::string>() : std::nullopt;
        if (!v) fail(key, node ? "must be a text" : "is missing");
        return *v;
    }
    /// One number or an array of numbers; empty when it is not there.
    std::vector<double> numbers(std::string_view key, const NumberRange& range) {
        const auto* node = get(key);
        if (!node) return {};
        if (!node->is_array()) return {checked(*node, key, range)};
        std::vector<double> values;
        for (const auto& item : *node->as_array()) values.push_back(checked(item, key, range));
        return values;
    }
    /// An array of texts; empty when it is not there.
    std::vector<std::string> texts(std::string_view key) {
        const auto* node = get(key);
        if (!node) return {};
        if (!node->is_array()) fail(key, "must be a list of texts");
        std::vector<std::string> values;
        for (const auto& item : *node->as_array()) {
            const auto* text = item.as_string();
            if (!text) fail(key, "must be a list of texts");
            values.push_back(text->get());
        }
        return values;
    }
    /// A sub-table; empty when it is not there.
    Section section(std::string_view key) {
        static const toml::table kEmpty;
        const auto* node = get(key);
        if (node && !node->is_table()) fail(key, "must be a table");
        return {node ? *node->as_table() : kEmpty, where_ + ": [" + std::string(key) + "]"};
    }
    /// The names of all keys, in order.
    std::vector<std::string> keys() const {
        std::vector<std::string> names;
        for (const auto& [key, value] : table_) names.emplace_back(key.str());
        return names;
    }
    /// The tables of an array of tables.
    std::vector<Section> sections(std::string_view key) {
        std::vector<Section> result;
        const auto* node = get(key);
        if (!node) return result;
        if (!node->is_array_of_tables()) fail(key, "must be a list of tables: [[" + std::string(key) + "]]");
        for (const auto& item : *node->as_array())
            result.emplace_back(*item.as_table(), where_ + ": [[" + std::string(key) + "]] " +
                                                      std::to_string(result.size() + 1));
        return result;
    }
    /// Throws when the file has a key nobody asked for: a misspelt key must not be silence.
    void finish() const {
        for (const auto& [key, value] : table_)
            if (!known_.contains(std::string(key.str())))
                throw ConfigError(where_ + line_of(value) + ": unknown key \"" + std::string(key.str()) +
                                  "\"");
    }
    [[noreturn]] void fail(std::string_view key, const std::string& why) const {
        const auto* node = table_.get(key);
        throw ConfigError(where_ + line_of(node ? *node : table_) + ": \"" + std::string(key) + "\" " + why);
    }

  private:
    /// ", line 12"; nothing for a table that no file has.
    static std::string line_of(const toml::node& node) {
        const auto line = node.source().begin.line;
        return line ? ", line " + std::to_string(line) : std::string();
    }
    const toml::node* get(std::string_view key) {
        known_.insert(std::string(key));
        return table_.get(key);
    }
    double checked(const toml::node& node, std::string_view key, const NumberRange& range,
                   const char* kind = "a number") const {
        const auto v = node.value<double>();
        if (!v) fail(key, "must be " + std::string(kind) + " " + range.text());
        if (!range.contains(*v)) refuse(key, *v, range, kind);
        return *v;
    }
    [[noreturn]] void refuse(std::string_view key, double v, const NumberRange& range,
                             const char* kind) const {
        fail(key, "is " + format_number(v) + "; expected " + kind + " " + range.text());
    }

    const toml::table& table_;
    std::string where_;
    std::set<std::string> known_;
};

}  // namespace citysplat
