#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// What can be wrong with the rows of a catalog although SQLite finds nothing wrong with the file. Knows
/// SQLite and the names of the tables; columns and their types are read from the catalog itself, so that a
/// new column is tried without a line here.
namespace citysplat::test {

struct Mutation {
    std::string what;  ///< "source 2: kept = 0"
    std::string sql;
    bool relaxed = false;  ///< needs a schema without NOT NULL while it is applied; the schema is put back
};

/// Every column of some rows of every table with several wrong values, and rows removed, doubled, exchanged
/// and moved. Some of them change nothing, or SQLite refuses them: see mutate().
std::vector<Mutation> catalog_mutations(const std::filesystem::path& catalog);

/// Applies a mutation. False when SQLite refused it, or when afterwards the catalog says the same as before.
/// The numbers of the rows of `tile` and `input` say nothing: no other row refers to them.
bool mutate(const std::filesystem::path& catalog, const Mutation& mutation);

}  // namespace citysplat::test
