#include "citysplat/manual/command_tree.hpp"

/// Scripts that complete the command line. They hold everything and do not start the program: a completion
/// answers at once.
namespace citysplat::cli {

namespace {

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }
/// "bank" of "bank list"; nothing of "build".
std::string parent_of(const std::string& path) {
    const std::size_t space = path.rfind(' ');
    return space == std::string::npos ? "" : path.substr(0, space);
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

std::string names_of(const std::vector<VerbText>& verbs) {
    std::vector<std::string> names;
    for (const VerbText& verb : verbs) names.push_back(last_word(verb.path));
    return joined(names);
}

std::string names_of(const std::vector<FlagText>& flags) {
    std::vector<std::string> names;
    for (const FlagText& flag : flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
    return joined(names);
}

/// The cases of one verb: what follows a flag. `at` is the verb as a pattern of the shell.
std::string cases_of_values(const std::vector<FlagText>& flags, const std::string& at) {
    std::string cases, free;
    for (const FlagText& flag : flags) {
        if (flag.value.empty()) continue;
        std::string pattern;
        for (const std::string& name : flag.names)
            pattern += (pattern.empty() ? "" : " | ") + at + "\":" + name + "\"";
        if (flag.choices.empty())
            free += (free.empty() ? "" : " | ") + pattern;
        else
            cases += "        " + pattern + ") words=\"" + joined(flag.choices) + "\" ;;\n";
    }
    // Nothing is proposed for other values: then the shell proposes files.
    if (!free.empty()) cases += "        " + free + ") return ;;\n";
    return cases;
}

/// A function of the shell that leaves its proposals in COMPREPLY.
std::string bash_function(const VerbText& program, const std::string& name) {
    const auto verbs = all_verbs(program);
    std::string text = name +
                       "() {\n"
                       "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                       "    local verb= words= i\n"
                       "    COMPREPLY=()\n"
                       "    # --flag=word comes as three words.\n"
                       "    if [[ $word == = ]]; then word=; fi\n"
                       "    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                       "    for ((i = 1; i < COMP_CWORD; ++i)); do\n"
                       "        case \"$verb/${COMP_WORDS[i]}\" in\n";
    for (const VerbText* verb : verbs)
        text += "            \"" + parent_of(verb->path) + "/" + last_word(verb->path) + "\") verb=\"" +
                verb->path + "\" ;;\n";
    text +=
        "        esac\n"
        "    done\n"
        "    case \"$verb:$before\" in\n";
    for (const VerbText* verb : verbs) text += cases_of_values(verb->flags, "\"" + verb->path + "\"");
    text += cases_of_values(program.flags, "*");
    text +=
        "    esac\n"
        "    if [[ -z $words && $word == -* ]]; then\n"
        "        case \"$verb\" in\n";
    for (const VerbText* verb : verbs)
        if (!verb->flags.empty())
            text += "            \"" + verb->path + "\") words=\"" + names_of(verb->flags) + "\" ;;\n";
    text += "        esac\n        words+=\" --help " + names_of(program.flags) +
            "\"\n"
            "    elif [[ -z $words ]]; then\n"
            "        case \"$verb\" in\n"
            "            \"\") words=\"" +
            names_of(program.verbs) + "\" ;;\n";
    for (const VerbText* verb : verbs)
        if (!verb->verbs.empty())
            text += "            \"" + verb->path + "\") words=\"" + names_of(verb->verbs) + "\" ;;\n";
    return text +
           "            *) return ;;\n"
           "        esac\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n";
}

/// A word of the language of fish, in quotes.
std::string fish_word(const std::string& text) {
    std::string word = "'";
    for (const char c : text) {
        if (c == '\n') break;  // the first line of an explanation is enough
        if (c == '\'' || c == '\\') word += '\\';
        word += c;
    }
    return word + "'";
}

std::string fish_flags(const std::vector<FlagText>& flags, const std::string& condition) {
    std::string text;
    for (const FlagText& flag : flags) {
        text += "complete -c citysplat" + condition;
        for (const std::string& name : flag.names)
            text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (!flag.choices.empty())
            text += " -x -a " + fish_word(joined(flag.choices));
        else if (!flag.value.empty())
            text += " -r";
        text += " -d " + fish_word(flag.explanation) + "\n";
    }
    return text;
}

}  // namespace

std::string bash_completion(const VerbText& program) {
    return "# Completion of citysplat for bash, made by: citysplat completion bash\n" +
           bash_function(program, "_citysplat") +
           "complete -o bashdefault -o default -F _citysplat citysplat\n";
}

std::string zsh_completion(const VerbText& program) {
    return "#compdef citysplat\n"
           "# Completion of citysplat for zsh, made by: citysplat completion zsh\n"
           "autoload -U +X bashcompinit && bashcompinit\n" +
           bash_function(program, "_citysplat_words") +
           "# Loaded from $fpath this file is the function that completes; sourced it registers one.\n"
           "if [[ ${funcstack[1]} == _citysplat ]]; then\n"
           "    _bash_complete -o default -F _citysplat_words\n"
           "else\n"
           "    complete -o default -F _citysplat_words citysplat\n"
           "fi\n";
}

std::string fish_completion(const VerbText& program) {
    const auto verbs = all_verbs(program);
    std::string text =
        "# Completion of citysplat for fish, made by: citysplat completion fish\n"
        "function __citysplat_at\n"
        "    set -l verb ''\n"
        "    for word in (commandline -opc)[2..]\n"
        "        switch \"$verb/$word\"\n";
    for (const VerbText* verb : verbs)
        text += "            case " + fish_word(parent_of(verb->path) + "/" + last_word(verb->path)) +
                "\n                set verb " + fish_word(verb->path) + "\n";
    text +=
        "        end\n"
        "    end\n"
        "    test \"$verb\" = \"$argv[1]\"\n"
        "end\n" +
        fish_flags(program.flags, "") + "complete -c citysplat -l help -d 'explain the flags'\n";
    for (const VerbText* verb : verbs) {
        const auto at = [](const std::string& path) {
            return " -n " + fish_word("__citysplat_at \"" + path + "\"");
        };
        text += "complete -c citysplat -f" + at(parent_of(verb->path)) + " -a " + last_word(verb->path) +
                " -d " + fish_word(verb->explanation) + "\n";
        text += fish_flags(verb->flags, at(verb->path));
    }
    return text;
}

}  // namespace citysplat::cli
