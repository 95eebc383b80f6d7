#include "gis/layer_styles.hpp"

#include <vector>

namespace citysplat::gis {

namespace {

/// Red, green, blue, opacity as QGIS writes them.
struct Look {
    const char* fill;
    const char* line;
    const char* width_mm;
};

std::string option(const char* name, const std::string& value) {
    return std::string("<Option type=\"QString\" name=\"") + name + "\" value=\"" + value + "\"/>";
}

std::string fill_symbol(const std::string& name, const Look& look) {
    return "<symbol type=\"fill\" name=\"" + name +
           "\" alpha=\"1\" clip_to_extent=\"1\" force_rhr=\"0\"><layer class=\"SimpleFill\" enabled=\"1\" "
           "pass=\"0\" locked=\"0\"><Option type=\"Map\">" +
           option("color", look.fill) + option("style", "solid") + option("outline_color", look.line) +
           option("outline_style", "solid") + option("outline_width", look.width_mm) +
           option("outline_width_unit", "MM") + "</Option></layer></symbol>";
}

std::string line_symbol(const std::string& name, const Look& look) {
    return "<symbol type=\"line\" name=\"" + name +
           "\" alpha=\"1\" clip_to_extent=\"1\" force_rhr=\"0\"><layer class=\"SimpleLine\" enabled=\"1\" "
           "pass=\"0\" locked=\"0\"><Option type=\"Map\">" +
           option("line_color", look.line) + option("line_style", "solid") +
           option("line_width", look.width_mm) + option("line_width_unit", "MM") +
           "</Option></layer></symbol>";
}

std::string document(const std::string& renderer) {
    return "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
           "<qgis version=\"3.22\" styleCategories=\"Symbology\">" +
           renderer + "</qgis>\n";
}

std::string single(const std::string& symbol) {
    return document(
        "<renderer-v2 type=\"singleSymbol\" symbollevels=\"0\" forceraster=\"0\" "
        "enableorderby=\"0\"><symbols>" +
        symbol + "</symbols></renderer-v2>");
}

struct Category {
    const char* value;
    Look look;
};

std::string by_column(const char* column, const std::vector<Category>& categories) {
    std::string list, symbols;
    for (std::size_t i = 0; i < categories.size(); ++i) {
        const std::string name = std::to_string(i);
        list += std::string("<category render=\"true\" value=\"") + categories[i].value + "\" label=\"" +
                categories[i].value + "\" symbol=\"" + name + "\" type=\"string\"/>";
        symbols += fill_symbol(name, categories[i].look);
    }
    return document(std::string("<renderer-v2 type=\"categorizedSymbol\" attr=\"") + column +
                    "\" symbollevels=\"0\" forceraster=\"0\" enableorderby=\"0\"><categories>" + list +
                    "</categories><symbols>" + symbols + "</symbols></renderer-v2>");
}

}  // namespace

std::string tiles_style(std::int64_t generation) {
    const std::string id = std::to_string(generation);
    return document(
        "<renderer-v2 type=\"RuleRenderer\" symbollevels=\"0\" forceraster=\"0\" enableorderby=\"0\"><rules "
        "key=\"tiles\"><rule key=\"new\" symbol=\"0\" label=\"since generation " +
        id + "\" filter=\"&quot;since_generation&quot; = " + id +
        "\"/><rule key=\"kept\" symbol=\"1\" label=\"older\" filter=\"ELSE\"/></rules><symbols>" +
        fill_symbol("0", {"253,174,97,110", "217,95,14,255", "0.3"}) +
        fill_symbol("1", {"189,201,225,60", "116,140,171,255", "0.2"}) + "</symbols></renderer-v2>");
}

std::string inputs_style() { return single(fill_symbol("0", {"0,0,0,0", "90,90,90,200", "0.3"})); }

std::string trajectories_style() { return single(line_symbol("0", {"", "31,120,180,255", "0.6"})); }

std::string tile_changes_style() {
    return by_column("change", {{"added", {"127,201,127,120", "56,142,60,255", "0.3"}},
                                {"changed", {"253,192,134,120", "230,115,20,255", "0.3"}},
                                {"removed", {"240,98,98,120", "183,28,28,255", "0.3"}}});
}

std::string changes_style() {
    return by_column("kind", {{"new", {"27,158,119,150", "0,90,60,255", "0.5"}},
                              {"gone", {"215,48,39,150", "140,0,0,255", "0.5"}},
                              {"moved", {"69,117,180,150", "20,50,120,255", "0.5"}}});
}

}  // namespace citysplat::gis
