#include "citysplat/manual/command_tree.hpp"

#include <algorithm>

namespace citysplat::cli {

namespace {

/// Text as man(7) prints it: a hyphen that can be copied, a backslash, and no line that is taken for a
/// command because it begins with a dot or an apostrophe.
std::string escaped(const std::string& text) {
    std::string out;
    bool begins_line = true;
    for (const char c : text) {
        if (begins_line && (c == '.' || c == '\'')) out += "\\&";
        begins_line = c == '\n';
        if (c == '-')
            out += "\\-";
        else if (c == '\\')
            out += "\\e";
        else
            out += c;
    }
    return out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string heading(const FlagText& flag) {
    std::string text;
    for (const std::string& name : flag.names) text += (text.empty() ? "" : ", ") + bold(name);
    if (!flag.value.empty() && flag.value != "TEXT") text += " " + italic(flag.value);
    return text;
}

std::string list_of(const std::string& title, const std::vector<FlagText>& flags) {
    if (flags.empty()) return {};
    std::string text = ".SH " + title + "\n";
    for (const FlagText& flag : flags) {
        text += ".TP\n" + heading(flag) + "\n" +
                (flag.explanation.empty() ? "\\&" : escaped(flag.explanation)) + "\n";
        if (flag.choices.empty()) continue;
        text += ".br\nOne of";
        for (std::size_t i = 0; i < flag.choices.size(); ++i)
            text += (i == 0 ? " " : ", ") + bold(flag.choices[i]);
        text += ".\n";
    }
    return text;
}

std::string list_of(const std::vector<VerbText>& verbs) {
    if (verbs.empty()) return {};
    std::string text = ".SH COMMANDS\n";
    for (const VerbText& verb : verbs)
        text += ".TP\n" + bold(manual_name(verb)) + "(1)\n" + escaped(verb.explanation) + "\n";
    return text;
}

std::string in_capitals(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

}  // namespace

std::string manual_name(const VerbText& verb) {
    std::string name = verb.path.empty() ? "citysplat" : "citysplat-" + verb.path;
    std::replace(name.begin(), name.end(), ' ', '-');
    return name;
}

std::string manual_page(const VerbText& program, const VerbText& verb) {
    const bool whole = verb.path.empty();
    const std::string command = whole ? "citysplat" : "citysplat " + verb.path;
    std::string text = ".TH " + in_capitals(escaped(manual_name(verb))) + " 1 \"\" \"citysplat " +
                       CITYSPLAT_VERSION + "\" \"citysplat\"\n.SH NAME\n" + escaped(manual_name(verb)) +
                       " \\- " + escaped(verb.explanation) + "\n.SH SYNOPSIS\n" + bold(command) + " [" +
                       italic("options") + "]";
    if (!verb.verbs.empty()) text += " " + italic("command");
    for (const FlagText& argument : verb.arguments) text += " " + italic(argument.names[0]);
    text +=
        "\n" + list_of(verb.verbs) + list_of("ARGUMENTS", verb.arguments) + list_of("OPTIONS", verb.flags);
    if (!whole) text += list_of("OPTIONS OF ALL COMMANDS", program.flags);
    if (!verb.footer.empty()) text += ".SH NOTES\n.nf\n" + escaped(verb.footer) + "\n.fi\n";
    return text + ".SH SEE ALSO\n" +
           (whole ? escaped("the documentation in docs/") : bold("citysplat") + "(1)") + "\n";
}

}  // namespace citysplat::cli
