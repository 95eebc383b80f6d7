#include "tiling/store/sqlite.hpp"

#include "core/error.hpp"

#include <sqlite3.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace citysplat::tiling {

namespace {

/// Writers commit in milliseconds; a reader that meets one waits instead of failing.
constexpr int kBusyTimeout_ms = 20'000;
/// No text of ours is longer; a damaged catalog must not fill the memory.
constexpr int kLongestValue_bytes = 64 << 20;

int open_flags(Database::Access access) {
    switch (access) {
        case Database::Access::read_only:
            return SQLITE_OPEN_READONLY;
        case Database::Access::read_write:
            return SQLITE_OPEN_READWRITE;
        case Database::Access::create:
            return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    }
    return SQLITE_OPEN_READONLY;
}

}  // namespace

void Database::Close::operator()(sqlite3* db) const { ::sqlite3_close_v2(db); }

Database::Database(const std::filesystem::path& path, Access access) : path_(path) {
    sqlite3* db = nullptr;
    const int code = ::sqlite3_open_v2(path.c_str(), &db, open_flags(access) | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) fail(code, "open");
    ::sqlite3_busy_timeout(db, kBusyTimeout_ms);
    ::sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kLongestValue_bytes);
    ::sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    ::sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

void Database::fail(int code, std::string_view doing) const {
    const int kind = code & 0xff;
    const std::string message = "cannot " + std::string(doing) + " " + path_.string() + ": " +
                                (db_ ? ::sqlite3_errmsg(db_.get()) : ::sqlite3_errstr(code));
    switch (kind) {
        case SQLITE_FULL:
            throw ResourceError(message + "; free some space and run the same command again");
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            throw BusyError(message + "; try again");
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_MISMATCH:
        case SQLITE_TOOBIG:
            throw CorruptionError(message + "; citysplat repair rebuilds the catalog from the objects");
        default:
            throw IoError(message);
    }
}

void Database::execute(const std::string& sql) {
    const int code = ::sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(::sqlite3_extended_errcode(db_.get()), "update");
}

std::int64_t Database::integer(const std::string& sql) {
    Statement s(*this, sql);
    return s.step() && !s.is_null(0) ? s.integer(0) : 0;
}

std::string Database::text(const std::string& sql) {
    Statement s(*this, sql);
    return s.step() ? s.text(0) : std::string();
}

std::int64_t Database::last_id() const { return ::sqlite3_last_insert_rowid(db_.get()); }

void Statement::Finalize::operator()(sqlite3_stmt* s) const { ::sqlite3_finalize(s); }

Statement::Statement(Database& db, std::string_view sql) : db_(db) {
    sqlite3_stmt* s = nullptr;
    const int code =
        ::sqlite3_prepare_v2(db.db_.get(), sql.data(), static_cast<int>(sql.size()), &s, nullptr);
    statement_.reset(s);
    if (code != SQLITE_OK) db.fail(code, "query");
}

Statement& Statement::bind(int index, std::int64_t value) {
    if (const int code = ::sqlite3_bind_int64(statement_.get(), index, value)) db_.fail(code, "query");
    return *this;
}

Statement& Statement::bind(int index, double value) {
    if (const int code = ::sqlite3_bind_double(statement_.get(), index, value)) db_.fail(code, "query");
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    if (const int code = ::sqlite3_bind_text(statement_.get(), index, text.data(),
                                             static_cast<int>(text.size()), SQLITE_TRANSIENT))
        db_.fail(code, "query");
    return *this;
}

Statement& Statement::bind(int index, const Hash128& hash) {
    const std::array<std::uint64_t, 2> words{hash.high, hash.low};
    if (const int code =
            ::sqlite3_bind_blob(statement_.get(), index, words.data(), sizeof words, SQLITE_TRANSIENT))
        db_.fail(code, "query");
    return *this;
}

Statement& Statement::bind(int index, std::span<const std::byte> blob) {
    if (const int code =
            ::sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_TRANSIENT))
        db_.fail(code, "query");
    return *this;
}

Statement& Statement::bind_null(int index) {
    if (const int code = ::sqlite3_bind_null(statement_.get(), index)) db_.fail(code, "query");
    return *this;
}

bool Statement::step() {
    const int code = ::sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    db_.fail(::sqlite3_extended_errcode(db_.db_.get()), "use");
}

void Statement::run() {
    while (step()) {
    }
    reset();
}

void Statement::reset() { ::sqlite3_reset(statement_.get()); }

void Statement::refuse(int column, const std::string& what) const {
    throw CorruptionError(db_.path().string() + " is damaged: column " +
                          ::sqlite3_column_name(statement_.get(), column) + " of a row " + what +
                          "; citysplat repair rebuilds the catalog from the objects");
}

void Statement::require_type(int column, int type) const {
    static constexpr std::array<const char*, 6> kTypes{"",       "a whole number", "a number",
                                                       "a text", "bytes",          "nothing"};
    const int found = ::sqlite3_column_type(statement_.get(), column);
    if (found != type)
        refuse(column, std::string("holds ") + kTypes[static_cast<std::size_t>(found)] + " instead of " +
                           kTypes[static_cast<std::size_t>(type)]);
}

std::int64_t Statement::integer(int column) const {
    require_type(column, SQLITE_INTEGER);
    return ::sqlite3_column_int64(statement_.get(), column);
}

std::int64_t Statement::integer(int column, std::int64_t least, std::int64_t most) const {
    const std::int64_t value = integer(column);
    if (value < least || value > most) refuse(column, "holds " + std::to_string(value));
    return value;
}

std::uint64_t Statement::count(int column) const {
    return static_cast<std::uint64_t>(integer(column, 0, std::numeric_limits<std::int64_t>::max()));
}

double Statement::real(int column) const {
    require_type(column, SQLITE_FLOAT);
    const double value = ::sqlite3_column_double(statement_.get(), column);
    if (!std::isfinite(value)) refuse(column, "is not finite");
    return value;
}

bool Statement::is_null(int column) const {
    return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string Statement::text(int column) const {
    require_type(column, SQLITE_TEXT);
    const auto* text = reinterpret_cast<const char*>(::sqlite3_column_text(statement_.get(), column));
    return {text, static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column))};
}

Hash128 Statement::hash(int column) const {
    require_type(column, SQLITE_BLOB);
    std::array<std::uint64_t, 2> words;
    const void* blob = ::sqlite3_column_blob(statement_.get(), column);
    if (::sqlite3_column_bytes(statement_.get(), column) != sizeof words)
        refuse(column, "does not have the 16 bytes of a hash");
    std::memcpy(words.data(), blob, sizeof words);
    return {words[0], words[1]};
}

Transaction::Transaction(Database& db, Kind kind) : db_(db) {
    db_.execute(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
    if (!open_) return;
    try {
        db_.execute("ROLLBACK");
    } catch (...) {
        // SQLite has rolled back by itself after a full disk or an I/O error.
    }
}

void Transaction::commit() {
    db_.execute("COMMIT");
    open_ = false;
}

}  // namespace citysplat::tiling
