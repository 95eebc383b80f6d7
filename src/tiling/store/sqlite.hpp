#pragma once

#include "core/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

/// A thin fence around SQLite: the only users are this file's .cpp, the catalog and GeoPackages. Every
/// failure is an exception of the right kind: full disk, I/O error, busy, damaged file.
namespace citysplat::tiling {

class Database {
  public:
    enum class Access { read_only, read_write, create };
    Database(const std::filesystem::path& path, Access access);

    void execute(const std::string& sql);
    std::int64_t integer(const std::string& sql);
    std::string text(const std::string& sql);
    std::int64_t last_id() const;
    const std::filesystem::path& path() const { return path_; }

  private:
    friend class Statement;
    struct Close {
        void operator()(sqlite3* db) const;
    };
    [[noreturn]] void fail(int code, std::string_view doing) const;

    std::filesystem::path path_;
    std::unique_ptr<sqlite3, Close> db_;
};

/// A prepared statement. Parameters are numbered from 1, columns from 0.
class Statement {
  public:
    Statement(Database& db, std::string_view sql);

    Statement& bind(int index, std::int64_t value);
    Statement& bind(int index, std::uint64_t value) { return bind(index, static_cast<std::int64_t>(value)); }
    Statement& bind(int index, std::int32_t value) { return bind(index, std::int64_t{value}); }
    Statement& bind(int index, double value);
    Statement& bind(int index, std::string_view text);
    Statement& bind(int index, const Hash128& hash);
    Statement& bind(int index, std::span<const std::byte> blob);
    Statement& bind_null(int index);

    bool step();  ///< true: a row is there
    void run();   ///< steps to the end and resets
    void reset();

    /// SQLite stores any type in any column: what is not of the type asked for is a CorruptionError.
    std::int64_t integer(int column) const;
    std::int64_t integer(int column, std::int64_t least, std::int64_t most) const;
    std::uint64_t count(int column) const;  ///< not negative
    std::uint64_t bits(int column) const { return static_cast<std::uint64_t>(integer(column)); }
    double real(int column) const;  ///< finite
    std::string text(int column) const;
    Hash128 hash(int column) const;  ///< 16 bytes
    bool is_null(int column) const;

  private:
    void require_type(int column, int type) const;
    [[noreturn]] void refuse(int column, const std::string& what) const;
    struct Finalize {
        void operator()(sqlite3_stmt* s) const;
    };
    Database& db_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Rolls back unless committed. Does not nest.
class Transaction {
  public:
    enum class Kind { read, write };
    Transaction(Database& db, Kind kind);
    ~Transaction();
    void commit();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

  private:
    Database& db_;
    bool open_ = true;
};

}  // namespace citysplat::tiling
