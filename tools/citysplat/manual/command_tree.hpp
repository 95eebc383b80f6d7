#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The command line as data. Verbs register their flags once, with CLI11; completions and manual pages are
/// made from what is read back here.
namespace citysplat::cli {

struct FlagText {
    std::vector<std::string> names;    ///< "-q", "--quiet"; of an argument its only name, "city"
    std::string value;                 ///< what follows it, "HZ"; empty for a switch
    std::vector<std::string> choices;  ///< the only values it takes, where these are words
    std::string explanation;
};

struct VerbText {
    std::string path;  ///< "build", "bank list"; empty for the program itself
    std::string explanation, footer;
    std::vector<FlagText> flags, arguments;
    std::vector<VerbText> verbs;
};

/// Hidden flags and verbs are left out, and so is the flag of the help page, which all of them have.
VerbText read_command_tree(const CLI::App& program);

/// The verbs below this one, and those below them, in their order.
std::vector<const VerbText*> all_verbs(const VerbText& program);

/// For bash, zsh and fish. Each is a complete script.
std::string bash_completion(const VerbText& program);
std::string zsh_completion(const VerbText& program);
std::string fish_completion(const VerbText& program);

/// The manual page of the program or of a verb, in the language of man(7).
std::string manual_page(const VerbText& program, const VerbText& verb);
/// "citysplat-bank-list": its name without the section.
std::string manual_name(const VerbText& verb);

}  // namespace citysplat::cli
