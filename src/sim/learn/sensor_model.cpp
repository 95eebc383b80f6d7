#include "sim/learn/sensor_model.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "core/toml_section.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace citysplat::sim::learn {

namespace {

/// In every file; never change.
constexpr const char* kKind = "citysplat sensor model";
/// 2: [intensity] has residuals; 3: [drop] has likely_above; 4: [drop] has lost_above. Files have the least
/// version that can read them.
constexpr std::uint64_t kVersion = 4;
constexpr std::string_view kChecksum = "\n[checksum]\nxxh3_128 = \"";

// Floating point numbers as text without loss: hexadecimal, as C and Python write them, without "0x".

template <class Float>
std::string hex_text(std::span<const Float> values) {
    std::string text;
    for (const Float value : values) {
        char digits[40];
        const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::hex).ptr;
        if (!text.empty()) text += ' ';
        text.append(digits, end);
    }
    return text;
}

/// Nothing unless there are exactly `count` finite numbers between blanks.
template <class Float>
std::optional<std::vector<Float>> parse_hex(std::string_view text, std::size_t count) {
    std::vector<Float> values;
    for (const std::string_view word : words_of(text)) {
        Float value{};
        const auto [end, ec] =
            std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::hex);
        if (ec != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
            return std::nullopt;
        values.push_back(value);
    }
    if (values.size() != count) return std::nullopt;
    return values;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string line(std::string_view key, const std::string& value) {
    return std::string(key) + " = " + value + "\n";
}

std::string list(std::string_view key, const std::vector<std::string>& texts) {
    std::string out = std::string(key) + " = [\n";
    for (const std::string& text : texts) out += "    " + quoted(text) + ",\n";
    return out + "]\n";
}

std::string decimal(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6f", value);
    return text;
}

/// Rows of `width` numbers, one text each.
std::vector<std::string> rows_of(std::span<const float> values, std::size_t width) {
    std::vector<std::string> rows;
    for (std::size_t at = 0; at < values.size(); at += width)
        rows.push_back(hex_text(values.subspan(at, width)));
    return rows;
}

std::string text_of(const BeamNetwork& net) {
    const Network& n = net.network;
    return list("layer1", rows_of(std::span(n.w1[0], kHidden1 * kFeatures), kFeatures)) +
           list("bias1_by_beam", rows_of(net.bias, kHidden1)) +
           list("layer2", rows_of(std::span(n.w2[0], kHidden2 * kHidden1), kHidden1)) +
           line("bias2", quoted(hex_text(std::span<const float>(n.b2)))) +
           line("layer3", quoted(hex_text(std::span<const float>(n.w3)))) +
           line("bias3", quoted(hex_text(std::span(&n.b3, 1))));
}

/// A byte for each degree, 255: always. A row of zeros is an empty text.
std::vector<std::string> mask_rows(const OwnCarMask& mask) {
    std::vector<std::string> rows;
    for (std::size_t at = 0; at < mask.probability.size(); at += kMaskCells) {
        std::string row;
        bool any = false;
        for (std::size_t i = at; i < at + kMaskCells; ++i) {
            const auto level = static_cast<unsigned>(mask.probability[i] * 255.0f + 0.5f);
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", level);
            row += digits;
            any = any || level > 0;
        }
        rows.push_back(any ? row : "");
    }
    return rows;
}

/// Numbers of a text of the file.
template <class Float>
std::vector<Float> numbers(const Section& section, std::string_view key, std::string_view text,
                           std::size_t count) {
    auto values = parse_hex<Float>(text, count);
    if (!values) section.fail(key, "must have " + std::to_string(count) + " hexadecimal numbers in a row");
    return std::move(*values);
}

std::vector<float> read_rows(Section& section, std::string_view key, std::size_t rows, std::size_t width) {
    const std::vector<std::string> texts = section.texts(key);
    if (texts.size() != rows)
        section.fail(key, "has " + std::to_string(texts.size()) + " rows instead of " + std::to_string(rows));
    std::vector<float> all;
    for (const std::string& text : texts) {
        const std::vector<float> row = numbers<float>(section, key, text, width);
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

template <std::size_t kCount>
void read_into(Section& section, std::string_view key, float (&to)[kCount]) {
    const std::vector<float> values = numbers<float>(section, key, section.text(key), kCount);
    std::memcpy(to, values.data(), sizeof to);
}

BeamNetwork read_network(Section& section, std::uint32_t beams) {
    BeamNetwork net;
    Network& n = net.network;
    const std::vector<float> w1 = read_rows(section, "layer1", kHidden1, kFeatures),
                             w2 = read_rows(section, "layer2", kHidden2, kHidden1);
    std::memcpy(n.w1, w1.data(), sizeof n.w1);
    std::memcpy(n.w2, w2.data(), sizeof n.w2);
    net.bias = read_rows(section, "bias1_by_beam", beams, kHidden1);
    read_into(section, "bias2", n.b2);
    read_into(section, "layer3", n.w3);
    n.b3 = numbers<float>(section, "bias3", section.text("bias3"), 1)[0];
    return net;
}

OwnCarMask read_mask(Section section, std::uint32_t beams) {
    OwnCarMask mask;
    mask.below_deg = section.number("below_deg", {-90, 90, "degrees"});
    const std::vector<std::string> rows = section.texts("probability");
    section.finish();
    if (rows.size() != beams) section.fail("probability", "needs a row for each beam");
    for (const std::string& row : rows) {
        if (!row.empty() && row.size() != 2 * kMaskCells)
            section.fail("probability", "needs two hexadecimal digits for each degree, or an empty row");
        for (std::size_t i = 0; i < kMaskCells; ++i) {
            unsigned level = 0;
            if (!row.empty()) {
                const char* at = row.data() + 2 * i;
                if (std::from_chars(at, at + 2, level, 16).ptr != at + 2)
                    section.fail("probability", "has digits that are not hexadecimal");
            }
            mask.probability.push_back(static_cast<float>(level) / 255.0f);
        }
    }
    return mask;
}

Normalisation read_features(Section section) {
    const std::vector<std::string> names = section.texts("names");
    bool same = names.size() == kFeatures;
    for (std::size_t i = 0; same && i < kFeatures; ++i) same = names[i] == kFeatureNames[i];
    if (!same) section.fail("names", "are not the features of this version; learn the model anew");
    Normalisation norm{};
    read_into(section, "mean", norm.mean);
    read_into(section, "scale", norm.scale);
    section.finish();
    return norm;
}

NoiseShares read_noise(Section& section) {
    const std::vector<double> shares =
        numbers<double>(section, "noise_shares", section.text("noise_shares"), 2);
    const NoiseShares noise{shares[0], shares[1]};
    if (!(noise.scan >= 0 && noise.place >= 0 && noise.scan + noise.place <= 1))
        section.fail("noise_shares", "must not be negative and sum to 1 at most");
    return noise;
}

ResidualTable read_residuals(Section& section) {
    ResidualTable table{};
    table.share = numbers<double>(section, "residual_share", section.text("residual_share"), 1)[0];
    if (!(table.share >= 0 && table.share <= 1)) section.fail("residual_share", "must be from 0 to 1");
    const std::vector<float> values = read_rows(section, "residuals", kResidualLevels, kResidualSteps);
    std::memcpy(table.values, values.data(), sizeof table.values);
    return table;
}

/// The part before the checksum; throws CorruptionError when it was changed.
std::string_view checked(std::string_view text, std::string_view origin) {
    const std::size_t end = text.rfind(kChecksum);
    if (end == std::string_view::npos)
        throw CorruptionError(std::string(origin) +
                              ": has no checksum at its end; it is cut off, or not a model of a sensor");
    const std::string_view body = text.substr(0, end), hex = text.substr(end + kChecksum.size(), 32);
    if (hash_bytes(std::as_bytes(std::span(body))).hex() != hex)
        throw CorruptionError(std::string(origin) +
                              ": does not fit its checksum; it was changed after learn-sensor wrote it");
    return body;
}

}  // namespace

IntensityCorrection IntensityCorrection::none(std::uint32_t beams) {
    IntensityCorrection result;
    result.gain.assign(beams, 1);
    result.net.bias.assign(std::size_t{beams} * kHidden1, 0);
    return result;
}

bool IntensityCorrection::corrects() const {
    const auto differs = [](float value) { return value != 0; };
    return net.network.b3 != 0 ||
           std::any_of(std::begin(net.network.w3), std::end(net.network.w3), differs) ||
           std::any_of(gain.begin(), gain.end(), [](float g) { return g != 1; });
}

void SensorModel::check(const Sensor& other, std::string_view origin) const {
    const std::uint32_t there = ScanGrid(other).beams();
    if (there != beams)
        throw ConfigError(std::string(origin) + " was learned for \"" + sensor + "\" with " +
                          std::to_string(beams) + " beams; \"" + other.id + "\" has " +
                          std::to_string(there) + ": learn a model for it");
}

float SensorModel::lost_above_of(double share) const {
    const double at = std::clamp(share / kLostStep, 0.0, static_cast<double>(kLostSteps - 1));
    const auto before = static_cast<std::size_t>(at);
    const std::size_t after = std::min(before + 1, kLostSteps - 1);
    const auto low = static_cast<double>(lost_above[before]), high = static_cast<double>(lost_above[after]);
    return static_cast<float>(low + (at - static_cast<double>(before)) * (high - low));
}

std::string SensorModel::text() const {
    std::vector<std::string> names(kFeatureNames, kFeatureNames + kFeatures);
    std::string out =
        "# How a sensor on its vehicle loses returns and sees intensities, as citysplat learn-sensor found "
        "it "
        "out.\n"
        "# Weights are hexadecimal floating point numbers, without loss; docs/formats.md tells the rest.\n";
    const bool has_residuals = intensity && intensity->residuals;
    out += line("kind", quoted(kKind)) +
           line("version", std::to_string(!lost_above.empty() ? 4
                                          : likely_above      ? 3
                                          : has_residuals     ? 2
                                                              : 1)) +
           line("sensor", quoted(sensor)) + line("beams", std::to_string(beams));
    out += "\n[training]\n" + line("digest", quoted(training_digest)) +
           line("rays", std::to_string(training_rays));
    out += "\n[held_out]\n" + line("rays", std::to_string(metrics.rays));
    for_each_metric(metrics, [&](const char* key, double value) { out += line(key, decimal(value)); });
    out += "\n[features]\n" + list("names", names) +
           line("mean", quoted(hex_text(std::span<const float>(norm.mean)))) +
           line("scale", quoted(hex_text(std::span<const float>(norm.scale))));
    out += "\n[mask]\n" + line("below_deg", decimal(mask.below_deg)) + list("probability", mask_rows(mask));
    const double shares[2] = {noise.scan, noise.place};
    out += "\n[drop]\n" + line("noise_shares", quoted(hex_text(std::span<const double>(shares))));
    if (likely_above) out += line("likely_above", quoted(hex_text(std::span(&*likely_above, 1))));
    if (!lost_above.empty()) out += line("lost_above", quoted(hex_text(std::span<const float>(lost_above))));
    out += text_of(drop);
    if (intensity)
        out += "\n[intensity]\n" +
               line("gain_by_beam", quoted(hex_text(std::span<const float>(intensity->gain)))) +
               text_of(intensity->net);
    if (has_residuals)
        out += line("residual_share", quoted(hex_text(std::span(&intensity->residuals->share, 1)))) +
               list("residuals",
                    rows_of(std::span(intensity->residuals->values[0], kResidualLevels * kResidualSteps),
                            kResidualSteps));
    const Hash128 checksum = hash_bytes(std::as_bytes(std::span(out)));
    return out + std::string(kChecksum) + checksum.hex() + "\"\n";
}

SensorModel SensorModel::parse(std::string_view text, std::string_view origin) {
    const toml::table table = parse_toml(checked(text, origin), origin);
    Section root(table, std::string(origin));
    if (root.text("kind") != kKind) root.fail("kind", "is not \"" + std::string(kKind) + "\"");
    if (root.whole("version", 1, 1000) > kVersion)
        root.fail("version", "is newer than this program; use the one that wrote the model");
    SensorModel model;
    model.sensor = root.text("sensor");
    model.beams = static_cast<std::uint32_t>(root.whole("beams", 1, 65535));
    Section training = root.section("training");
    model.training_digest = training.text("digest");
    model.training_rays = training.whole("rays", 0, std::uint64_t{1} << 53);
    training.finish();
    Section held_out = root.section("held_out");
    model.metrics.rays = held_out.whole("rays", 0, std::uint64_t{1} << 53);
    for_each_metric(model.metrics, [&](const char* key, double& value) {
        value = held_out.number(key, {-1e9, 1e9});
    });
    held_out.finish();
    model.norm = read_features(root.section("features"));
    model.mask = read_mask(root.section("mask"), model.beams);
    Section drop = root.section("drop");
    model.noise = read_noise(drop);
    if (drop.has("likely_above"))
        model.likely_above = numbers<float>(drop, "likely_above", drop.text("likely_above"), 1)[0];
    if (drop.has("lost_above")) {
        model.lost_above = numbers<float>(drop, "lost_above", drop.text("lost_above"), kLostSteps);
        if (!std::is_sorted(model.lost_above.rbegin(), model.lost_above.rend()))
            drop.fail("lost_above", "does not descend");
    }
    model.drop = read_network(drop, model.beams);
    drop.finish();
    if (root.has("intensity")) {
        Section section = root.section("intensity");
        model.intensity.emplace();
        model.intensity->gain =
            numbers<float>(section, "gain_by_beam", section.text("gain_by_beam"), model.beams);
        model.intensity->net = read_network(section, model.beams);
        if (section.has("residuals")) model.intensity->residuals = read_residuals(section);
        section.finish();
    }
    root.finish();
    return model;
}

SensorModel SensorModel::load(const std::filesystem::path& path) {
    return parse(read_text_file(path), path.string());
}

}  // namespace citysplat::sim::learn
