#include "sim/learn/sensor_model.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "learn/some_model.hpp"
#include "sim/learn/probit.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace citysplat;
using namespace citysplat::sim::learn;
using test::some_model;

namespace {

/// The text with another value, and a checksum that fits it.
std::string edited(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const std::string head = "\n[checksum]\nxxh3_128 = \"";
    const std::string body = text.substr(0, text.rfind(head));
    return body + head + hash_bytes(std::as_bytes(std::span(body))).hex() + "\"\n";
}

}  // namespace

TEST_CASE("a model comes back from its text bit by bit") {
    SensorModel model = some_model(5);
    for (const bool with_intensity : {true, false}) {
        if (!with_intensity) model.intensity.reset();
        const std::string text = model.text();
        const SensorModel back = SensorModel::parse(text, "m.toml");
        CHECK(back.text() == text);
        CHECK(back.sensor == model.sensor);
        CHECK(back.beams == 5);
        CHECK(back.training_rays == model.training_rays);
        CHECK(back.metrics.log_loss == model.metrics.log_loss);
        CHECK(std::memcmp(&back.drop.network, &model.drop.network, sizeof(Network)) == 0);
        CHECK(back.drop.bias == model.drop.bias);
        CHECK(std::memcmp(&back.norm, &model.norm, sizeof model.norm) == 0);
        CHECK(back.mask.probability == model.mask.probability);
        CHECK(back.noise.scan == model.noise.scan);
        CHECK(back.likely_above == model.likely_above);
        CHECK(back.lost_above == model.lost_above);
        REQUIRE(back.intensity.has_value() == with_intensity);
        if (with_intensity) {
            CHECK(back.intensity->gain == model.intensity->gain);
            CHECK(back.intensity->net.bias == model.intensity->net.bias);
            REQUIRE(back.intensity->residuals);
            CHECK(std::memcmp(&*back.intensity->residuals, &*model.intensity->residuals,
                              sizeof(ResidualTable)) == 0);
        }
    }
}

TEST_CASE("a model that does not say which drops are likely is written as before") {
    SensorModel model = some_model(5);
    model.lost_above.clear();
    CHECK(model.text().find("version = 3\n") != std::string::npos);
    model.likely_above.reset();
    const std::string text = model.text();
    CHECK(text.find("version = 2\n") != std::string::npos);
    CHECK(text.find("likely") == std::string::npos);
    CHECK_FALSE(SensorModel::parse(text, "m.toml").likely_above);
}

TEST_CASE("the limit for a share of the returns lies between those that the model knows") {
    SensorModel model = some_model(5);
    const double step = SensorModel::kLostStep;
    CHECK(model.lost_above_of(0) == model.lost_above.front());
    CHECK(model.lost_above_of(4 * step) == Approx(model.lost_above[4]));
    CHECK(model.lost_above_of(4.5 * step) == Approx((model.lost_above[4] + model.lost_above[5]) / 2));
    CHECK(model.lost_above_of(1) == model.lost_above.back());
    std::swap(model.lost_above[3], model.lost_above[7]);
    CHECK_THROWS_WITH(SensorModel::parse(model.text(), "m.toml"), Catch::Contains("does not descend"));
}

TEST_CASE("a model whose text was cut or changed anywhere is refused") {
    const std::string text = some_model(3).text();
    // The line feed behind the checksum says nothing.
    for (std::size_t end = 0; end + 2 < text.size(); end += 97)
        CHECK_THROWS_AS(SensorModel::parse(text.substr(0, end), "m.toml"), CorruptionError);
    for (std::size_t at = 0; at + 3 < text.size(); at += 61) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        CAPTURE(at);
        CHECK_THROWS_AS(SensorModel::parse(damaged, "m.toml"), Error);
    }
    CHECK_THROWS_WITH(SensorModel::parse("name = \"HDL\"\n", "m.toml"), Catch::Contains("m.toml"));
}

TEST_CASE("a model that fits its checksum but makes no sense is refused with the key") {
    const std::string text = some_model(3).text();
    const auto refused = [&](const std::string& from, const std::string& to, const std::string& key) {
        CHECK_THROWS_WITH(SensorModel::parse(edited(text, from, to), "m.toml"),
                          Catch::Contains("m.toml") && Catch::Contains(key));
    };
    refused("version = 4", "version = 5", "version");
    refused("kind = \"citysplat", "kind = \"other", "kind");
    refused("beams = 3", "beams = 4", "probability");
    refused("\"root_range\"", "\"something\"", "names");
    refused("noise_shares = \"", "noise_shares = \"1p+0 ", "noise_shares");
    refused("noise_shares = \"1p-2", "noise_shares = \"-1p-2", "noise_shares");
    refused("noise_shares = \"1p-2", "noise_shares = \"1.8p-1", "noise_shares");
    refused("bias3 = \"", "bias3 = \"nan", "bias3");
    refused("\n[mask]\n", "\n[mask]\nelse = 1\n", "else");
}

TEST_CASE("the normal distribution of training is the right one") {
    for (double x = -8; x <= 8; x += 0.037) {
        CAPTURE(x);
        CHECK(normal_cdf(x) == Approx(0.5 * std::erfc(-x / std::sqrt(2.0))).epsilon(1e-10));
        CHECK(exponential(x) == Approx(std::exp(x)).epsilon(1e-13));
        const ProbitLoss::Value value = ProbitLoss().at(static_cast<float>(x));
        CHECK(static_cast<double>(value.loss) ==
              Approx(-std::log(0.5 * std::erfc(-x / std::sqrt(2.0)))).margin(2e-5));
        const double density = std::exp(-x * x / 2) / std::sqrt(2 * exact::kPi);
        CHECK(static_cast<double>(value.slope) ==
              Approx(density / (0.5 * std::erfc(-x / std::sqrt(2.0)))).margin(2e-5));
    }
}
