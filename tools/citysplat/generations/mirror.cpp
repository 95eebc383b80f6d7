#include "tiling/care/mirror.hpp"

#include "citysplat/context.hpp"
#include "citysplat/verbs.hpp"
#include "core/bytes.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace citysplat::cli {

void add_mirror(CLI::App& app, Context& context) {
    struct Flags {
        std::string city, copy;
        bool deep = false;
    };
    auto flags = std::make_shared<Flags>();
    CLI::App& verb = *app.add_subcommand("mirror", "bring a copy of a city on another disk up to date");
    verb.fallthrough();
    verb.add_option("city", flags->city, "directory of the city")->required();
    verb.add_option("copy", flags->copy, "directory of the copy: new, empty, or an earlier mirror")
        ->required();
    verb.add_flag(
        "--deep", flags->deep,
        "read what the copy has and copy again what is damaged there (default: sizes are compared)");
    verb.footer(
        "Example: citysplat mirror city /mnt/nas/city\n"
        "Objects are copied first and the catalog last: readers of the copy see whole generations at any\n"
        "moment. Nothing is deleted there; citysplat gc COPY removes what its generations no longer need.");
    verb.callback([flags, &context] {
        const Stopwatch watch;
        const auto r =
            tiling::mirror_city(flags->city, flags->copy, context.cancel(), context.progress(), flags->deep);
        context.result({{"generation", r.generation},
                        {"generations", r.generations},
                        {"objects", r.objects},
                        {"objects_copied", r.objects_copied},
                        {"objects_healed", r.objects_healed},
                        {"bytes_copied", r.bytes_copied},
                        {"changed", r.changed},
                        {"seconds", watch.seconds()}},
                       "generation " + std::to_string(r.generation) + (r.changed ? ": " : " (unchanged): ") +
                           format_count(r.objects_copied) + " of " + format_count(r.objects) +
                           " objects copied, " + format_bytes(r.bytes_copied) +
                           (r.objects_healed > 0
                                ? "; " + format_count(r.objects_healed) + " of them were damaged in the copy"
                                : std::string()) +
                           "\n");
    });
}

}  // namespace citysplat::cli
