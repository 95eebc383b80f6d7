#include "citysplat/generations/generation_flag.hpp"

#include "citysplat/generations/text_flags.hpp"
#include "tiling/care/generations.hpp"

#include <CLI/CLI.hpp>

namespace citysplat::cli {

void GenerationFlag::add_to(CLI::App& verb) {
    verb.add_option("--generation", name_,
                    "which generation: its number, a tag, or a date (the city as it was then, UTC); default: "
                    "the latest")
        ->check(not_empty())
        ->type_name("N|TAG|DATE");
}

std::optional<std::int64_t> GenerationFlag::number(const std::string& city) const {
    return tiling::generation_number(city, name_);
}

}  // namespace citysplat::cli
