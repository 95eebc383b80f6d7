#pragma once

#include "core/error.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "io/drive/nuscenes_tables.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

/// Rows of the JSON tables of nuScenes. For .cpp files only.
namespace citysplat::io {

/// One row of a table, with the words for what is wrong with it.
class NuscenesRow {
  public:
    NuscenesRow(const nlohmann::json& row, const std::string& table, std::size_t number)
        : row_(row), table_(table), number_(number) {}

    std::string text(const char* field) const {
        const nlohmann::json* value = find(field);
        if (!value || !value->is_string()) fail(field, "expected a text");
        return value->get<std::string>();
    }
    double number(const char* field, const NumberRange& range) const {
        const nlohmann::json* value = find(field);
        if (!value || !value->is_number() || !range.contains(value->get<double>()))
            fail(field, "expected a number " + range.text());
        return value->get<double>();
    }
    /// Translation and rotation (w first).
    Pose pose() const {
        const auto t = numbers("translation", 3), q = numbers("rotation", 4);
        const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        if (!(std::fabs(n - 1) < 0.02)) fail("rotation", "expected a quaternion of length 1");
        return {{t[0], t[1], t[2]}, {q[1] / n, q[2] / n, q[3] / n, q[0] / n}};
    }
    [[noreturn]] void fail(const char* field, const std::string& expected) const {
        throw InputError(table_ + ".json: row " + std::to_string(number_) + ": " + field + ": " + expected);
    }

    std::vector<double> numbers(const char* field, std::size_t count) const {
        const nlohmann::json* value = find(field);
        const std::string expected = "expected " + std::to_string(count) + " numbers";
        if (!value || !value->is_array() || value->size() != count) fail(field, expected);
        std::vector<double> result;
        for (const nlohmann::json& v : *value) {
            if (!v.is_number() || !ranges::kPosition_m.contains(v.get<double>())) fail(field, expected);
            result.push_back(v.get<double>());
        }
        return result;
    }

  private:
    const nlohmann::json* find(const char* field) const {
        const auto found = row_.find(field);
        return found == row_.end() ? nullptr : &*found;
    }

    const nlohmann::json& row_;
    const std::string& table_;
    std::size_t number_;
};

/// The tables of a data set, read row by row; rows are forgotten as soon as they are used.
class NuscenesTables {
  public:
    explicit NuscenesTables(const OpenTable& open, const CancelToken& cancel)
        : open_(open), cancel_(cancel) {}

    using Use = std::function<void(const NuscenesRow&)>;
    /// Calls `use` with each row; false when there is no such table.
    bool read_if_there(const std::string& table, const Use& use) const {
        const auto in = open_(table);
        if (!in) return false;
        std::size_t number = 0;
        bool is_table = false;
        const auto event = [&](int depth, nlohmann::json::parse_event_t kind, nlohmann::json& parsed) {
            if (depth != 1 || kind != nlohmann::json::parse_event_t::object_end) return true;
            cancel_.check();
            use(NuscenesRow(parsed, table, ++number));
            return false;
        };
        try {
            is_table = nlohmann::json::parse(*in, event).is_array();
        } catch (const nlohmann::json::exception& e) {
            throw InputError(table + ".json: behind row " + std::to_string(number) + ": " +
                             printable(e.what()));
        }
        if (!is_table) throw InputError(table + ".json: expected an array of rows");
        return true;
    }
    /// The same of a table that must be there.
    void read(const std::string& table, const Use& use) const {
        if (!read_if_there(table, use))
            throw InputError("cannot open " + table +
                             ".json, which is needed; it is one of nuScenes' tables");
    }

  private:
    const OpenTable& open_;
    const CancelToken& cancel_;
};

}  // namespace citysplat::io
