#include "citysplat/context.hpp"
#include "citysplat/manual/command_tree.hpp"
#include "citysplat/verbs.hpp"
#include "core/output_file.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace citysplat::cli {

void add_completion(CLI::App& app, Context& context) {
    auto shell = std::make_shared<std::string>();
    CLI::App& verb = *app.add_subcommand("completion", "a script that completes the command line in a shell");
    verb.fallthrough();
    verb.add_option("shell", *shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->type_name("SHELL");
    verb.footer(
        "Example: source <(citysplat completion bash)\n"
        "For fish: citysplat completion fish | source\n"
        "The Debian package installs all three.");
    verb.callback([shell, &app, &context] {
        const VerbText program = read_command_tree(app);
        const std::string script = *shell == "bash"  ? bash_completion(program)
                                   : *shell == "zsh" ? zsh_completion(program)
                                                     : fish_completion(program);
        context.result({{"shell", *shell}, {"script", script}}, script);
    });
}

void add_manual(CLI::App& app, Context& context) {
    auto directory = std::make_shared<std::string>();
    CLI::App& verb = *app.add_subcommand("manual", "write the manual pages, one a verb, for man");
    verb.fallthrough();
    verb.add_option("directory", *directory, "where to; it is made if it does not exist")->required();
    verb.footer(
        "Example: citysplat manual pages && man pages/citysplat-build.1\n"
        "The Debian package installs them.");
    verb.callback([directory, &app, &context] {
        const VerbText program = read_command_tree(app);
        const std::filesystem::path folder = *directory;
        std::filesystem::create_directories(folder);
        std::vector<const VerbText*> verbs = all_verbs(program);
        verbs.insert(verbs.begin(), &program);
        nlohmann::json pages = nlohmann::json::array();
        for (const VerbText* page : verbs) {
            context.cancel().check();
            OutputFile file(folder / (manual_name(*page) + ".1"));
            file.writer().text(manual_page(program, *page));
            file.commit();
            pages.push_back(file.path().filename().string());
        }
        context.result({{"directory", folder.string()}, {"pages", pages}},
                       std::to_string(pages.size()) + " pages in " + folder.string() + "\n");
    });
}

}  // namespace citysplat::cli
