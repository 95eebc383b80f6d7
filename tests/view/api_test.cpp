#include "sim/memory_city.hpp"
#include "view/server/cube_message.hpp"
#include "view/server/view_api.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace citysplat;
using namespace citysplat::view;
using nlohmann::json;

namespace {

const CancelToken kGoOn;
const std::string kToken(32, '7');

/// A server of a small street, without its sockets.
struct Street {
    test::MemoryCity city{test::street(651000, 6861000, 60), 32};
    CityFacts facts;
    ViewApi api;

    Street() : facts(some_facts()), api({city, facts}, options()) {}

    static ApiOptions options() {
        ApiOptions options;
        options.port = 8765;
        options.token = kToken;
        return options;
    }

    CityFacts some_facts() const {
        CityFacts f;
        f.name = "<script>alert(1)</script>\xff";
        f.generation = 3;
        f.digest = "00112233445566778899aabbccddeeff";
        f.tiles.resize(city.tiles().size());
        f.inputs = {"/data/<b>one</b>.las"};
        for (TileFacts& tile : f.tiles) tile.inputs = {0};
        f.tiles[2].problem = "it is <i>gone</i>";
        return f;
    }
    Response get(const std::string& target, const std::vector<Header>& more = {}) {
        Request request{"GET", target, {{"Host", "127.0.0.1:8765"}, {"x-citysplat-token", kToken}}};
        request.headers.insert(request.headers.end(), more.begin(), more.end());
        return api.answer(request, kGoOn);
    }
    json get_json(const std::string& target) {
        const Response response = get(target);
        INFO(target << ": " << response.body);
        REQUIRE(response.status == 200);
        return json::parse(response.body);
    }
    int status(const std::string& method, const std::string& target, const std::vector<Header>& headers) {
        return api.answer({method, target, headers}, kGoOn).status;
    }
};

Street& street() {
    static Street one;
    return one;
}

std::vector<std::string> data_routes() {
    const std::string key = street().get_json("/api/city")["levels_key"];
    return {"/api/city",
            "/api/path",
            "/api/progress",
            "/api/ground/1",
            "/api/beside",
            "/api/distances",
            "/api/generations",
            "/api/scans",
            "/api/scan/0/0",
            "/api/boxes/0/0",
            "/api/diff/1/2",
            "/api/pick?o=651010,6861000,2&d=0,0,-1",
            "/api/cube/" + key + "/4/5086/53601/0",
            "/api/nothing",
            "/api/"};
}

}  // namespace

TEST_CASE("only a request that names this server once is answered") {
    Street& s = street();
    const auto with_hosts = [&](const std::vector<std::string>& hosts) {
        std::vector<Header> headers;
        for (const std::string& host : hosts) headers.push_back({"Host", host});
        return s.status("GET", "/", headers);
    };
    CHECK(with_hosts({"127.0.0.1:8765"}) == 200);
    CHECK(with_hosts({"localhost:8765"}) == 200);
    CHECK(with_hosts({}) == 400);
    CHECK(with_hosts({"127.0.0.1:8765", "127.0.0.1:8765"}) == 400);
    CHECK(with_hosts({"127.0.0.1:8765", "evil.test"}) == 400);
    for (const char* host :
         {"localhost.:8765", "127.0.0.1.nip.io:8765", "127.0.0.1", "localhost", "127.0.0.1:8766",
          "127.0.0.1:08765", "evil.test", "evil.test:8765", "LOCALHOST:8765", " 127.0.0.1:8765", "",
          "127.0.0.1:8765, evil.test", "[::1]:8765", "0.0.0.0:8765", "127.1:8765"}) {
        INFO(host);
        CHECK(with_hosts({host}) == 421);
    }
}

TEST_CASE("a page of another origin is refused") {
    Street& s = street();
    const auto with = [&](const std::string& name, const std::string& value) {
        return s.get("/", {{name, value}}).status;
    };
    CHECK(with("Origin", "http://127.0.0.1:8765") == 200);
    for (const char* origin : {"http://localhost:8765", "https://127.0.0.1:8765", "http://127.0.0.1:8766",
                               "null", "http://evil.test", "http://127.0.0.1:8765.evil.test", ""}) {
        INFO(origin);
        CHECK(with("Origin", origin) == 403);
    }
    CHECK(s.get("/", {{"Origin", "http://127.0.0.1:8765"}, {"origin", "http://127.0.0.1:8765"}}).status ==
          403);
    CHECK(with("Sec-Fetch-Site", "same-origin") == 200);
    CHECK(with("Sec-Fetch-Site", "none") == 200);
    CHECK(with("Sec-Fetch-Site", "cross-site") == 403);
    CHECK(with("Sec-Fetch-Site", "same-site") == 403);
}

TEST_CASE("nothing about the city is told without the token") {
    Street& s = street();
    const Header host{"Host", "127.0.0.1:8765"};
    for (const std::string& route : data_routes()) {
        INFO(route);
        CHECK(s.status("GET", route, {host}) == 401);
        CHECK(s.status("GET", route, {host, {"X-Citysplat-Token", ""}}) == 401);
        CHECK(s.status("GET", route, {host, {"X-Citysplat-Token", kToken.substr(1)}}) == 401);
        CHECK(s.status("GET", route, {host, {"X-Citysplat-Token", std::string(32, '8')}}) == 401);
        CHECK(s.status("GET", route, {host, {"X-Citysplat-Token", kToken}, {"X-Citysplat-Token", kToken}}) ==
              401);
        CHECK(s.status("GET", route, {host, {"Cookie", "t=" + kToken}}) == 401);
        CHECK(s.get(route).status != 401);
    }
    CHECK(s.get("/api/city?t=" + kToken).status == 404);
    CHECK(Gate::new_token().size() == 32);
    CHECK(Gate::new_token() != Gate::new_token());
}

TEST_CASE("only reading is possible") {
    Street& s = street();
    const std::vector<Header> honest{{"Host", "127.0.0.1:8765"}, {"X-Citysplat-Token", kToken}};
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", ""}) {
        INFO(method);
        CHECK(s.status(method, "/", honest) == 405);
        CHECK(s.status(method, "/api/city", honest) == 405);
    }
    CHECK(s.status("HEAD", "/api/city", honest) == 200);
    CHECK(s.get("/", {{"Content-Length", "0"}}).status == 200);
    CHECK(s.get("/", {{"Content-Length", "5"}}).status == 400);
    CHECK(s.get("/", {{"Transfer-Encoding", "chunked"}}).status == 400);
}

TEST_CASE("an address is looked up in a table and never decoded") {
    Street& s = street();
    const std::string hash = s.get("/").body.substr(s.get("/").body.find("/app/") + 5, 32);
    CHECK(s.get("/app/" + hash + "/main.js").status == 200);
    for (const std::string& path :
         {"/app/" + hash + "/../main.js", "/app/../app/" + hash + "/main.js", "/app/" + hash + "/",
          "/app/" + hash, "/app/" + hash + "/index.html", "/app/" + hash + "//main.js",
          std::string("/app//main.js"), "/app/" + std::string(32, '0') + "/main.js", std::string("//"),
          std::string("/index.html"), std::string("/../../etc/passwd"), std::string("/?x=1"),
          std::string("/api/city/"), std::string("/api/cube/x/0/0/0/0")}) {
        INFO(path);
        CHECK(s.get(path).status == 404);
    }
    for (const std::string& path :
         {std::string("/%2e%2e/etc/passwd"), std::string("/app%2f" + hash + "/main.js"), std::string("/%00"),
          std::string("/\0", 2), std::string("/a\0b", 4), std::string("/ "), std::string("/\xff"),
          std::string(""), std::string("main.js"), std::string("http://127.0.0.1:8765/"),
          std::string("/\\..\\x"), std::string("/#t=") + kToken, std::string("/\r\nX: y"),
          std::string("*")}) {
        INFO(path);
        CHECK(s.get(path).status == 400);
    }
    CHECK(s.get("/" + std::string(600, 'a')).status == 414);
}

TEST_CASE("every answer keeps the page to itself") {
    Street& s = street();
    for (const std::string& target : {std::string("/"), std::string("/api/city"), std::string("/nothing"),
                                      std::string("/%"), std::string("/api/pick?x")}) {
        const Response response = s.get(target);
        INFO(target);
        REQUIRE(response.header("Content-Security-Policy"));
        CHECK(response.header("Content-Security-Policy")->find("default-src 'none'") == 0);
        CHECK(response.header("Content-Security-Policy")->find("unsafe") == std::string::npos);
        CHECK(*response.header("X-Content-Type-Options") == "nosniff");
        CHECK(*response.header("Referrer-Policy") == "no-referrer");
        CHECK(*response.header("Cross-Origin-Resource-Policy") == "same-origin");
        CHECK(response.header("Access-Control-Allow-Origin") == nullptr);
        CHECK(*response.header("Cache-Control") == "no-store");
    }
}

TEST_CASE("the page is served as it stands in the source") {
    Street& s = street();
    const std::string page = s.get("/").body;
    const std::string hash = page.substr(page.find("/app/") + 5, 32);
    std::size_t files = 0, bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(CITYSPLAT_WEB)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(".js") && !name.ends_with(".css")) continue;
        std::ifstream in(entry.path(), std::ios::binary);
        const std::string content{std::istreambuf_iterator<char>(in), {}};
        const std::string target = "/app/" + hash + "/" + name;
        const Response response = s.get(target);
        INFO(name);
        CHECK(response.status == 200);
        CHECK(response.body == content);
        CHECK(response.header("Cache-Control")->find("immutable") != std::string::npos);
        const Response again = s.get(target, {{"If-None-Match", *response.header("ETag")}});
        CHECK(again.status == 304);
        CHECK(again.body.empty());
        ++files;
        bytes += content.size();
    }
    CHECK(files >= 1);
    CHECK(bytes <= 400'000);
}

TEST_CASE("the city is told as it is, and its texts are text") {
    Street& s = street();
    const json city = s.get_json("/api/city");
    CHECK(city["name"] == "<script>alert(1)</script>\\xFF");
    CHECK(city["generation"] == 3);
    CHECK(city["tiles"].size() == s.city.tiles().size());
    std::uint64_t splats = 0;
    for (std::size_t i = 0; i < s.city.tiles().size(); ++i) {
        CHECK(city["tiles"][i][3] == s.city.tiles()[i].splats);
        splats += s.city.tiles()[i].splats;
    }
    CHECK(city["splats"] == splats);
    REQUIRE(city["missing"].size() == 1);
    CHECK(city["missing"][0]["tile"] == s.city.tiles()[2].key.text());
    CHECK(city["missing"][0]["reason"] == "it is <i>gone</i>");
}

TEST_CASE("what a page asks for before it shows anything is quick") {
    for (const char* target : {"/", "/app/0123/main.js", "/api/city", "/api/city/3", "/api/progress/3",
                               "/api/beside", "/api/generations", "/api/scans"})
        CHECK_FALSE(ViewApi::is_slow(target));
    for (const char* target : {"/api/cube/0123/4/0/0/0", "/api/diff/1/2", "/api/pick?o=0,0,0&d=0,0,-1"})
        CHECK(ViewApi::is_slow(target));
}

TEST_CASE("a cube travels as the columns of the levels") {
    Street& s = street();
    const json city = s.get_json("/api/city");
    splat::LevelPyramid levels(s.city, {});
    const std::string key = city["levels_key"];
    std::size_t discs = 0;
    for (const json& root : city["roots"]) {
        const splat::CubeId id{root[0], root[1], root[2], root[3]};
        std::ostringstream target;
        target << "/api/cube/" << key << '/' << id.level << '/' << id.x << '/' << id.y << '/' << id.z;
        const Response response = s.get(target.str());
        REQUIRE(response.status == 200);
        CHECK(response.header("Cache-Control")->find("immutable") != std::string::npos);
        std::vector<std::uint32_t> words(response.body.size() / 4);
        std::memcpy(words.data(), response.body.data(), response.body.size());
        const splat::LevelCubePtr cube = levels.cube(id, kGoOn);
        CHECK(words[0] == kCubeMagic);
        CHECK(words[1] == (kCubeVersion | static_cast<std::uint32_t>(id.level) << 16));
        CHECK(words[7] == cube->discs.size());
        CHECK(words[8] == cube->pieces.size());
        CHECK(words[9] == words.size());
        CHECK(response.body.size() % 64 == 0);
        CHECK(std::ranges::equal(response.tail, cube->discs.bytes()));
        discs += words[7];
    }
    CHECK(discs > 0);
    CHECK(s.get("/api/cube/" + std::string(32, '0') + "/4/0/0/0").status == 404);
    CHECK(s.get("/api/cube/" + key + "/4/0/0/0").status == 404);
    CHECK(s.get("/api/cube/" + key + "/99/0/0/0").status == 404);
    CHECK(s.get("/api/cube/" + key + "/-1/0/0/0").status == 404);
    CHECK(s.get("/api/cube/" + key + "/0/99999999999/0/0").status == 404);
    CHECK(s.get("/api/cube/" + key + "/0/0/0").status == 404);
}

TEST_CASE("a pick is what the tracer meets, with the place of the splat") {
    Street& s = street();
    const auto tracer = trace::make_group_tracer();
    std::size_t hits = 0;
    for (int i = 0; i < 40; ++i) {
        const Vec3d origin{651010 + i * 0.7, 6861000.3, 1.9};
        const Vec3d direction{0.3, i % 2 ? 1.0 : -0.2, (i % 7) * 0.1 - 0.35};
        std::ostringstream target;
        target.precision(17);
        target << "/api/pick?o=" << origin.x << ',' << origin.y << ',' << origin.z << "&d=" << direction.x
               << ',' << direction.y << ',' << direction.z;
        const json picked = s.get_json(target.str());

        const trace::Ray ray{origin, vec_cast<float>(normalized(direction)), 0.0f, Picker::kFar_m};
        trace::Hit expected;
        for (std::size_t t = 0; t < s.city.tiles().size(); ++t) {
            const trace::TracerTilePtr tile = tracer->load(s.city.tile(t));
            tracer->closest(*tracer->bind(std::span(&tile, 1)), std::span(&ray, 1), std::span(&expected, 1));
        }
        INFO(target.str());
        REQUIRE(picked["hit"] == expected.exists());
        if (!expected.exists()) continue;
        ++hits;
        std::ostringstream id;
        id << std::hex;
        id.width(16);
        id.fill('0');
        id << expected.splat_id;
        CHECK(picked["splat_id"] == id.str());
        CHECK(picked["range_m"] == expected.range_m);
        CHECK(picked["label"] == expected.label);
        const json& place = picked["splat"];
        const std::size_t tile = place["tile_index"], index = place["index"];
        CHECK(test::MemoryCity::id(s.city.tile(tile), index) == expected.splat_id);
        CHECK(place["tile"] == s.city.tiles()[tile].key.text());
        CHECK(place["inputs"][0] == "/data/<b>one</b>.las");
    }
    CHECK(hits > 20);
    for (const char* query :
         {"", "o=1,2,3", "o=1,2,3&d=0,0,0", "o=1,2&d=0,0,1", "o=nan,2,3&d=0,0,1", "o=1,2,3&d=0,0,inf",
          "o=1e300,2,3&d=0,0,1", "o=1,2,3,4&d=0,0,1", "o=1,2,3&d=0,0,1&x=1", "d=0,0,1&o=1,2,3", "o=,,&d=,,",
          "o=1e-400,0,0&d=1e-9,0,0"}) {
        INFO(query);
        CHECK(s.get(std::string("/api/pick?") + query).status == 400);
    }
}
