#include "tiling/catalog_mutations.hpp"

#include <sqlite3.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

namespace citysplat::test {

namespace {

using Row = std::vector<std::string>;  ///< SQL literals

class Sqlite {
  public:
    explicit Sqlite(const std::filesystem::path& path) {
        sqlite3* db = nullptr;
        if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) throw std::runtime_error("cannot open the catalog");
        db_.reset(db);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    }
    bool execute(const std::string& sql) {
        return sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    }
    std::vector<Row> rows(const std::string& sql) {
        sqlite3_stmt* raw = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
            throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_.get()));
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
        std::vector<Row> rows;
        while (sqlite3_step(raw) == SQLITE_ROW) {
            Row row;
            for (int i = 0; i < sqlite3_column_count(raw); ++i) {
                const unsigned char* text = sqlite3_column_text(raw, i);
                row.emplace_back(text ? reinterpret_cast<const char*>(text) : "");
            }
            rows.push_back(std::move(row));
        }
        return rows;
    }

  private:
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close(db); }
    };
    std::unique_ptr<sqlite3, Close> db_;
};

struct Table {
    std::string name;
    std::string key;           ///< how a row is told from the others, as an SQL expression
    bool number_says_nothing;  ///< the column `id` means nothing outside of its row
};

const std::vector<Table>& tables() {
    static const std::vector<Table> all{
        {"generation", "id", false}, {"source", "id", false},  {"segment", "source||'/'||x||'/'||y", false},
        {"input", "id", true},       {"product", "id", false}, {"tile", "id", true}};
    return all;
}

struct Column {
    std::string name, type;
};

std::vector<Column> columns_of(Sqlite& db, const Table& table) {
    std::vector<Column> columns;
    for (const Row& row : db.rows("SELECT name, type FROM pragma_table_info('" + table.name + "')"))
        columns.push_back({row[0], row[1]});
    return columns;
}

/// The columns without a number that says nothing.
std::vector<Column> telling_columns(Sqlite& db, const Table& table) {
    auto columns = columns_of(db, table);
    if (table.number_says_nothing) std::erase_if(columns, [](const Column& c) { return c.name == "id"; });
    return columns;
}

std::string list_of(const std::vector<Column>& columns, const std::string& before = "",
                    const std::string& after = "") {
    std::string list;
    for (const Column& c : columns) list += (list.empty() ? "" : ",") + before + c.name + after;
    return list;
}

/// Wrong values for a column of this type. The row's own value is called by the column's name.
std::vector<std::string> wrong_values(const Column& c) {
    if (c.type == "INTEGER")
        return {c.name + "+1", c.name + "-1", c.name + "*2+3",       "0",      "-1",
                "2000000000",  "-9e18",       "9223372036854775807", "'nine'", "x'00ff'"};
    if (c.type == "REAL")
        return {c.name + "+1", c.name + "*(1+1e-15)+1e-300",
                "-" + c.name,  "0.0",
                "-1.0",        "1e300",
                "9e999",       "'nan'",
                "x'00'"};
    if (c.type == "TEXT")
        return {"''", c.name + "||' '", "'other'", "upper(" + c.name + ")||'X'", "x'ff00fe'", "7"};
    if (c.type == "BLOB")
        return {"zeroblob(16)", "x'00'", "zeroblob(17)", "x''", "randomblob(16)", "'0123456789abcdef'", "5"};
    throw std::runtime_error("a column of type " + c.type);
}

class Lister {
  public:
    explicit Lister(const std::filesystem::path& catalog) : db_(catalog) {}

    std::vector<Mutation> list() {
        for (const Table& table : tables()) {
            keys_.clear();
            for (const Row& row : db_.rows("SELECT " + table.key + " FROM " + table.name + " ORDER BY 1"))
                keys_.push_back(row[0]);
            if (keys_.size() < 2) throw std::runtime_error("the city is too small: " + table.name);
            change_values(table);
            change_rows(table);
            exchange_rows(table);
        }
        break_references();
        return std::move(list_);
    }

  private:
    void add(const std::string& what, const std::string& sql, bool relaxed = false) {
        list_.push_back({what, sql, relaxed});
    }
    static std::string where(const Table& table, const std::string& key) {
        return " WHERE " + table.key + "='" + key + "'";
    }

    void change_values(const Table& table) {
        const auto first = keys_.front(), last = keys_.back();
        for (const Column& c : telling_columns(db_, table)) {
            const auto set = [&](const std::string& key, const std::string& value, bool relaxed) {
                add(table.name + " " + key + ": " + c.name + " = " + value,
                    "UPDATE " + table.name + " SET " + c.name + "=" + value + where(table, key), relaxed);
            };
            for (const std::string& value : wrong_values(c))
                for (const std::string& key : std::set{first, last}) set(key, value, false);
            set(first, "NULL", true);
            const std::string of_other = "(SELECT o." + c.name + " FROM " + table.name + " o WHERE o." +
                                         c.name + " IS NOT " + table.name + "." + c.name + " LIMIT 1)";
            set(first, of_other, true);
            set(last, of_other, true);
        }
    }

    void change_rows(const Table& table) {
        const auto columns = columns_of(db_, table);
        for (const std::string& key : keys_)
            add(table.name + " " + key + " removed", "DELETE FROM " + table.name + where(table, key));
        add(table.name + ": all removed", "DELETE FROM " + table.name);
        // A copy of a row needs another number; where a hash must be unique, another hash.
        for (const std::string& key : {keys_.front(), keys_.back()}) {
            std::string values;
            for (const Column& c : columns) {
                const bool unique = (table.name == "product" && c.name == "key") || c.name == "identity";
                values += (values.empty() ? "" : ",") + (c.name == "id" ? "9+id"
                                                         : unique       ? "zeroblob(16)"
                                                         : table.name == "segment" && c.name == "x" ? "x+5"
                                                                                                    : c.name);
            }
            add(table.name + " " + key + " doubled", "INSERT INTO " + table.name + " SELECT " + values +
                                                         " FROM " + table.name + where(table, key));
        }
    }

    /// Two rows take each other's place, but for their numbers.
    void exchange_rows(const Table& table) {
        auto columns = columns_of(db_, table);
        if (table.name == "segment")
            std::erase_if(columns, [](const Column& c) {
                return c.name == "source" || c.name == "x" || c.name == "y";
            });
        std::erase_if(columns, [](const Column& c) { return c.name == "id"; });
        const std::string a = keys_.front(), b = keys_.back();
        const std::string names = list_of(columns);
        // By way of a third row: hashes are unique at every moment.
        const std::string take = "CREATE TEMP TABLE taken AS SELECT " + table.key + " AS k, * FROM " +
                                 table.name + where(table, a) + " OR " + table.key + "='" + b + "';";
        std::string clear;
        for (const Column& c : columns)
            if (c.name == "identity" || (table.name == "product" && c.name == "key"))
                clear = "UPDATE " + table.name + " SET " + c.name + "=randomblob(16)" + where(table, a) + ";";
        const auto put = [&](const std::string& to, const std::string& from) {
            return "UPDATE " + table.name + " SET (" + names + ")=(SELECT " + names +
                   " FROM taken WHERE k='" + from + "')" + where(table, to) + ";";
        };
        add(table.name + " " + a + " and " + b + " exchanged", take + clear + put(b, a) + put(a, b));
        for (const Column& c : columns)  // one column of them
            add(table.name + " " + a + " and " + b + ": " + c.name + " exchanged",
                take + clear + "UPDATE " + table.name + " SET " + c.name + "=(SELECT " + c.name +
                    " FROM taken WHERE k!=" + table.key + ")" + where(table, b) + ";UPDATE " + table.name +
                    " SET " + c.name + "=(SELECT " + c.name + " FROM taken WHERE k='" + b + "')" +
                    where(table, a));
    }

    void break_references() {
        for (const auto& [table, column] : std::map<std::string, std::string>{
                 {"tile", "product"}, {"input", "source"}, {"segment", "source"}}) {
            add("every " + table + " refers to nothing",
                "UPDATE " + table + " SET " + column + "=" + column + "+999");
            add("every " + table + " refers to the first", "UPDATE OR IGNORE " + table + " SET " + column +
                                                               "=(SELECT min(" + column + ") FROM " + table +
                                                               ")");
        }
        for (const std::string table : {"tile", "input"}) {
            add("every " + table + " ended", "UPDATE " + table + " SET last=first");
            add("no " + table + " ended", "UPDATE " + table + " SET last=NULL");
            add("every " + table + " begins later", "UPDATE " + table + " SET first=first+1");
            add("every " + table + " begins at once", "UPDATE " + table + " SET first=1");
            add("every " + table + " ends before it begins", "UPDATE " + table + " SET first=5, last=1");
            add("every " + table + " ends with the latest generation",
                "UPDATE " + table + " SET last=(SELECT max(id) FROM generation) WHERE last IS NULL");
            add("every " + table + " doubled",
                "INSERT INTO " + table + " SELECT id+1000" + other_columns(table) + " FROM " + table);
        }
        add("all boxes elsewhere", "UPDATE product SET min_x=min_x+1000, max_x=max_x+1000");
        add("all boxes turned over", "UPDATE product SET min_x=max_x, max_x=min_x");
        add("all boxes tiny", "UPDATE product SET min_x=0, max_x=0, min_y=0, max_y=0");
        add("no payloads", "UPDATE product SET object=NULL");
        add("no payloads, no splats", "UPDATE product SET object=NULL, splats=0, object_bytes=0");
        add("no digests", "UPDATE product SET digest=zeroblob(16)");
        add("a payload that is an archive",
            "UPDATE product SET (object, object_bytes)=(SELECT object, object_bytes"
            " FROM source LIMIT 1)");
        add("an archive that is a payload",
            "UPDATE source SET (object, object_bytes)=(SELECT object, object_bytes"
            " FROM product WHERE object IS NOT NULL LIMIT 1)");
        add("generations renumbered", "UPDATE generation SET id=id+10");
        add("the latest generation forgotten",
            "DELETE FROM generation WHERE id=(SELECT max(id) FROM generation)");
        add("all segments 100 sectors away", "UPDATE segment SET x=x+100");
    }

    std::string other_columns(const std::string& table) {
        auto columns = columns_of(db_, {table, "id", true});
        std::erase_if(columns, [](const Column& c) { return c.name == "id"; });
        return "," + list_of(columns);
    }

    Sqlite db_;
    std::vector<std::string> keys_;
    std::vector<Mutation> list_;
};

/// All that the catalog says, types included.
std::map<std::string, std::multiset<Row>> content_of(const std::filesystem::path& catalog) {
    Sqlite db(catalog);
    std::map<std::string, std::multiset<Row>> content;
    for (const Table& table : tables()) {
        const auto columns = telling_columns(db, table);
        for (Row& row : db.rows("SELECT " + list_of(columns, "quote(", ")") + " FROM " + table.name))
            content[table.name].insert(std::move(row));
    }
    return content;
}

}  // namespace

std::vector<Mutation> catalog_mutations(const std::filesystem::path& catalog) {
    return Lister(catalog).list();
}

bool mutate(const std::filesystem::path& catalog, const Mutation& mutation) {
    const auto before = content_of(catalog);
    const auto schema = [&catalog](const std::string& change) {
        return Sqlite(catalog).execute("PRAGMA writable_schema=ON; " + change);
    };
    constexpr const char* kRelax = "UPDATE sqlite_schema SET sql=replace(sql,' NOT NULL','/*NN*/')";
    constexpr const char* kRestore = "UPDATE sqlite_schema SET sql=replace(sql,'/*NN*/',' NOT NULL')";
    if (mutation.relaxed && !schema(kRelax)) throw std::runtime_error("the schema cannot be relaxed");
    const bool done = Sqlite(catalog).execute(mutation.sql);
    if (mutation.relaxed && !schema(kRestore)) throw std::runtime_error("the schema cannot be put back");
    return done && content_of(catalog) != before;
}

}  // namespace citysplat::test
