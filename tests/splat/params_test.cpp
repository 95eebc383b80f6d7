#include "core/error.hpp"
#include "splat/params/params_text.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::splat;

TEST_CASE("splat parameters written as text read back as the same") {
    for (const Method method : kMethods) {
        const SplatParams paper = SplatParams::paper(method);
        SplatParams read = SplatParams::of(method);
        change_params(read, params_text(paper), "text");
        CHECK(read == paper);
        SplatParams changed = SplatParams::of(method);
        change_params(changed, params_changes(paper), "text");
        CHECK(changed == paper);
        CHECK(params_changes(SplatParams::of(method)).empty());
    }
}

TEST_CASE("every splat parameter is part of the key of the methods that use it") {
    const auto key_of = [](const SplatParams& params) {
        Hasher hasher;
        params.add_to(hasher);
        return hasher.finish();
    };
    SplatParams usual, surfels;
    surfels.method = Method::surfels;
    SplatParams::for_each_field(usual, [&](std::string_view name, const auto& field, double, double) {
        INFO(name);
        const auto offset =
            reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&usual);
        const bool of_surfels = SplatParams::is_used(name, Method::surfels);
        CHECK(SplatParams::is_used(name, Method::adaptive) != of_surfels);
        SplatParams changed = of_surfels ? surfels : usual;
        auto& twin = *reinterpret_cast<std::remove_cvref_t<decltype(field)>*>(
            reinterpret_cast<std::byte*>(&changed) + offset);
        const auto change = [](auto& value) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>)
                value = !value;
            else
                ++value;
        };
        if constexpr (requires { twin.size(); })
            change(twin[2]);
        else
            change(twin);
        CHECK_FALSE(key_of(changed) == key_of(of_surfels ? surfels : usual));
        changed.method = of_surfels ? Method::adaptive : Method::surfels;
        CHECK(key_of(changed) == key_of(of_surfels ? usual : surfels));  // the others do not use it
    });
}

TEST_CASE("wrong splat parameters are named") {
    const auto message = [](std::string_view text) -> std::string {
        SplatParams params;
        try {
            change_params(params, text, "mine.toml");
        } catch (const ConfigError& e) {
            return e.what();
        }
        return "accepted";
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(message("smothness = 0.5"), Contains("mine.toml") && Contains("\"smothness\" is not"));
    CHECK_THAT(message("smoothness = 2"), Contains("smoothness must be from -1 to 1, not 2"));
    CHECK_THAT(message("smoothness = \"much\""), Contains("smoothness must be a number"));
    CHECK_THAT(message("neighbours = 12.5"), Contains("neighbours must be a whole number"));
    CHECK_THAT(message("group_factor = [1, 2]"), Contains("four values"));
    CHECK_THAT(message("a ="), Contains("line 1"));
    const SplatParams usual;
    SplatParams::for_each_field(usual, [&](std::string_view name, const auto& field, double, double) {
        for (const std::string bad : {"nan", "inf", "-inf", "1e308", "-1e308"}) {
            if constexpr (requires { field.size(); })
                CHECK_THAT(message(std::string(name) + " = [" + bad + ", 1, 1, 1]"), Contains("must be"));
            else
                CHECK_THAT(message(std::string(name) + " = " + bad), Contains("must be"));
        }
    });
    CHECK(message("suppression = 0.2\nerror_factor = [3, 1, 0.33, 0.25]") == "accepted");
}
