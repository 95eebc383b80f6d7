#pragma once

#include "run_program.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

/// The options of the program as its help pages list them.
namespace citysplat::test {

struct HelpOption {
    std::string verb;  ///< empty: common to all
    std::string name;  ///< "--rate"; a positional argument has no dashes
    std::string type;  ///< "HZ:NUMBER from 0.001 to 10000"; empty for a switch

    bool is_flag() const { return type.empty(); }
    bool numeric() const { return type.find(":NUMBER ") != std::string::npos; }
    /// Takes several values, after one another or with commas between them.
    bool several() const {
        return type.find(" x ") != std::string::npos || type.find("...") != std::string::npos;
    }
    bool with_commas() const {
        return several() && (word() == "FLOAT" || word().find(',') != std::string::npos);
    }
    /// "HZ".
    std::string word() const { return type.substr(0, type.find_first_of(":= ")); }
};

/// Lines of one help page: two blanks, the names, a blank and the type in capitals, then the explanation.
inline void add_options(const std::string& verb, std::vector<HelpOption>& out) {
    std::istringstream in(citysplat(verb.empty() ? std::vector<std::string>{"--help"}
                                                 : std::vector<std::string>{verb, "--help"})
                              .out);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    lines.emplace_back();
    std::string section;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
        const std::string& line = lines[i];
        if (!line.empty() && line[0] != ' ') section = line;
        if (line.rfind("  ", 0) != 0 || line.size() < 3 || line[2] == ' ') continue;
        if (section.rfind("Subcommands", 0) == 0 || section.rfind("Example", 0) == 0 ||
            section.rfind("Exit codes", 0) == 0)
            continue;
        const std::size_t end = line.find(' ', 2);
        std::string names = line.substr(2, end - 2);
        if (const std::size_t comma = names.find(','); comma != std::string::npos)
            names = names.substr(comma + 1);
        if (names == "--help" || names == "--version") continue;
        // The explanation begins at column 30, or there on the next line.
        const bool below = lines[i + 1].rfind(std::string(30, ' '), 0) == 0;
        std::string type;
        if (end != std::string::npos && (below || end < 30))
            type = line.substr(end + 1, below ? std::string::npos : 29 - end);
        while (!type.empty() && type.back() == ' ') type.pop_back();
        while (!type.empty() && type.front() == ' ') type.erase(0, 1);
        if (type.rfind("Excludes:", 0) == 0) type.clear();
        out.push_back({verb, names, type});
    }
}

inline std::vector<std::string> all_verbs() {
    const std::string help = citysplat({"--help"}).out;
    std::vector<std::string> names;
    std::istringstream in(help.substr(std::min(help.find("Subcommands:"), help.size())));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line) && line.rfind("  ", 0) == 0)
        if (line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
}

inline std::vector<HelpOption> all_options() {
    std::vector<HelpOption> options;
    add_options("", options);
    for (const std::string& verb : all_verbs()) add_options(verb, options);
    return options;
}

}  // namespace citysplat::test
