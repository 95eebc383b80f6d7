#include "core/text.hpp"
#include "fuzz.hpp"
#include "sim/memory_city.hpp"
#include "view/server/view_api.hpp"

#include <string>
#include <string_view>

using namespace citysplat;

namespace {

const std::string kToken(32, '7');

/// A few discs, so that every route has something to tell.
struct Server {
    test::MemoryCity city{{{{1, 2, 0}, {0, 0, 1}, 0.5}, {{70, 2, 1}, {0, 1, 0}, 0.5}}, 64};
    view::CityFacts facts;
    view::ViewApi api{{city, facts}, options()};

    static view::ApiOptions options() {
        view::ApiOptions options;
        options.port = 8765;
        options.token = kToken;
        return options;
    }
};

}  // namespace

/// Method, target and headers, a line each. Nothing may be told about the city without the token, nothing at
/// all to another host, and every answer must keep the page to itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Server server;
    static const CancelToken go_on;
    view::Request request;
    for (const Line& line : Lines(std::string_view(reinterpret_cast<const char*>(data), size))) {
        if (line.number == 1)
            request.method = line.text;
        else if (line.number == 2)
            request.target = line.text;
        else if (const std::size_t colon = line.text.find(": "); colon != std::string_view::npos)
            request.headers.push_back(
                {std::string(line.text.substr(0, colon)), std::string(line.text.substr(colon + 2))});
    }
    const view::Response response = server.api.answer(request, go_on);
    if (!response.header("Content-Security-Policy") || response.status == 500) std::abort();
    if (response.status == 200 || response.status == 304) {
        const auto host = request.only("Host");
        if (host != "127.0.0.1:8765" && host != "localhost:8765") std::abort();
        if (request.target.starts_with("/api/") && request.only("X-Citysplat-Token") != kToken) std::abort();
    }
    return 0;
}
