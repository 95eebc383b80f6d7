#include "core/error.hpp"
#include "core/file.hpp"
#include "datasets/synth/synth.hpp"

#include <nlohmann/json.hpp>

namespace citysplat::synth {

using nlohmann::ordered_json;

DriveParams TruthFile::drive_params() const {
    DriveParams p;
    p.seed = options.seed;
    p.length_m = options.length_m;
    p.localisation_m = options.localisation_m;
    return p;
}

SurveyParams TruthFile::survey_params(double columns_per_s) const {
    return {options.noise_m, options.mixed_pixels, options.outliers, columns_per_s};
}

Scanner TruthFile::scanner() const { return scanner_32(options.range_m); }
Scanner TruthFile::profile_scanner() const { return synth::profile_scanner(options.range_m); }

void TruthFile::write(const std::filesystem::path& path) const {
    ordered_json scanner_list = ordered_json::array();
    for (const ScannerRecord& s : scanners) {
        ordered_json files = ordered_json::array();
        for (const CloudFile& f : s.files) files.push_back({{"name", f.name}, {"points", f.points}});
        scanner_list.push_back({{"name", s.name},
                                {"trajectory", s.trajectory},
                                {"sensor", s.sensor},
                                {"columns_per_s", s.columns_per_s},
                                {"files", files}});
    }
    const ordered_json json = {
        {"kind", "citysplat synthetic drive"},
        {"city_version", kCityVersion},
        {"seed", options.seed},
        {"length_m", options.length_m},
        {"points_per_metre", options.points_per_metre},
        {"points", points},
        {"noise_m", options.noise_m},
        {"localisation_m", options.localisation_m},
        {"range_m", options.range_m},
        {"mixed_pixels", options.mixed_pixels},
        {"outliers", options.outliers},
        {"profile", options.profile},
        {"origin_m", {options.origin_m.x, options.origin_m.y, options.origin_m.z}},
        {"format", options.format == CloudFormat::las ? "las" : "ply"},
        {"files_per_scanner", options.files},
        {"begin_s", Drive::kBegin_s},
        {"classes", "synthetic"},
        {"scanners", scanner_list},
    };
    const std::string text = json.dump(2) + "\n";
    write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

TruthFile TruthFile::read(const std::filesystem::path& path) {
    const std::string text = read_text_file(path);
    try {
        const auto json = nlohmann::json::parse(text);
        if (json.at("kind") != "citysplat synthetic drive")
            throw InputError(path.string() + " is not the truth of a synthetic drive");
        if (const int version = json.at("city_version"); version != kCityVersion)
            throw ConfigError(path.string() + " describes version " + std::to_string(version) +
                              " of the synthetic city, this program makes version " +
                              std::to_string(kCityVersion) + "; run synth again");
        TruthFile t;
        t.options.seed = json.at("seed");
        t.options.length_m = json.at("length_m");
        t.options.points_per_metre = json.at("points_per_metre");
        t.options.noise_m = json.at("noise_m");
        t.options.localisation_m = json.at("localisation_m");
        t.options.range_m = json.at("range_m");
        t.options.mixed_pixels = json.at("mixed_pixels");
        t.options.outliers = json.at("outliers");
        t.options.profile = json.at("profile");
        const auto& origin = json.at("origin_m");
        t.options.origin_m = {origin.at(0), origin.at(1), origin.at(2)};
        t.options.format = json.at("format") == "ply" ? CloudFormat::ply : CloudFormat::las;
        t.options.files = json.at("files_per_scanner");
        t.points = json.at("points");
        for (const auto& s : json.at("scanners")) {
            ScannerRecord record{s.at("name"), s.at("trajectory"), s.at("sensor"), s.at("columns_per_s"), {}};
            for (const auto& f : s.at("files")) record.files.push_back({f.at("name"), f.at("points")});
            t.scanners.push_back(std::move(record));
        }
        t.options.validate();
        return t;
    } catch (const nlohmann::json::exception& e) {
        throw InputError(path.string() + ": damaged or incomplete: " + e.what());
    } catch (const UsageError& e) {
        throw InputError(path.string() + ": " + e.what());
    }
}

}  // namespace citysplat::synth
