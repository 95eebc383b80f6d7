#include "citysplat/manual/command_tree.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace citysplat::cli {

namespace {

/// "METHOD:{basic,adaptive}" has these two, "STYLE:{auto->0,bar->1}" as well; "N:NUMBER from 1 to 9" has
/// none.
std::vector<std::string> choices_in(const std::string& type) {
    const std::size_t open = type.find('{'), close = type.find('}', open);
    std::vector<std::string> choices;
    if (open == std::string::npos || close == std::string::npos) return choices;
    for (std::size_t at = open + 1; at < close;) {
        const std::size_t end = std::min(type.find(',', at), close);
        const std::string word = type.substr(at, end - at);
        choices.push_back(word.substr(0, word.find("->")));
        at = end + 1;
    }
    return choices;
}

FlagText read_flag(const CLI::Option& option) {
    FlagText flag;
    for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
    if (flag.names.empty()) flag.names.push_back(option.get_name(true));
    if (const std::string type = option.get_type_name(); !type.empty()) {
        flag.value = type.substr(0, type.find_first_of(":{"));
        if (flag.value.empty()) flag.value = "WORD";
        flag.choices = choices_in(type);
    }
    flag.explanation = option.get_description();
    return flag;
}

VerbText read_verb(const CLI::App& app, const std::string& path) {
    VerbText verb{path, app.get_description(), app.get_footer(), {}, {}, {}};
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty() || option == app.get_help_ptr()) continue;
        (option->get_positional() ? verb.arguments : verb.flags).push_back(read_flag(*option));
    }
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (sub->get_group().empty()) continue;
        verb.verbs.push_back(read_verb(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name()));
    }
    return verb;
}

void collect(const VerbText& verb, std::vector<const VerbText*>& all) {
    for (const VerbText& sub : verb.verbs) {
        all.push_back(&sub);
        collect(sub, all);
    }
}

}  // namespace

VerbText read_command_tree(const CLI::App& program) { return read_verb(program, ""); }

std::vector<const VerbText*> all_verbs(const VerbText& program) {
    std::vector<const VerbText*> all;
    collect(program, all);
    return all;
}

}  // namespace citysplat::cli
