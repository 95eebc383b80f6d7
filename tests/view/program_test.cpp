#include "cli/small_city.hpp"
#include "core/hash.hpp"
#include "view/http_client.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <vector>

using namespace citysplat;
using namespace citysplat::test;
namespace fs = std::filesystem;

namespace {

/// Every file of a directory: bytes and time of the last change.
std::map<std::string, std::string> tree(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        std::string what = std::to_string(entry.last_write_time().time_since_epoch().count());
        if (entry.is_regular_file()) {
            std::ifstream in(entry.path(), std::ios::binary);
            const std::string bytes{std::istreambuf_iterator<char>(in), {}};
            what += " " + hash_bytes(std::as_bytes(std::span(bytes))).hex();
        }
        files[entry.path().string()] = what;
    }
    return files;
}

/// `citysplat view` while it runs.
class Viewer {
  public:
    explicit Viewer(std::vector<std::string> arguments) {
        int pipe[2];
        if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        arguments.insert(arguments.begin(), {program(), "-q", "view"});
        std::vector<char*> argv;
        for (std::string& word : arguments) argv.push_back(word.data());
        argv.push_back(nullptr);
        child_ = ::fork();
        if (child_ == 0) {
            ::dup2(pipe[1], 1);
            ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(pipe[1]);
        for (char c; ::read(pipe[0], &c, 1) == 1 && c != '\n';) url += c;
        ::close(pipe[0]);
        const std::size_t mark = url.find("/#t=");
        if (mark == std::string::npos) throw std::runtime_error("no address: " + url);
        port = static_cast<std::uint16_t>(std::stoi(url.substr(17, mark - 17)));
        token = url.substr(mark + 4);
    }
    ~Viewer() {
        if (child_ > 0) end(SIGKILL);
    }
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    std::string get(const std::string& target) {
        Connection client(port);
        client.send("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                    "\r\nX-Citysplat-Token: " + token + "\r\n\r\n");
        return client.read_answer();
    }
    nlohmann::json get_json(const std::string& target) {
        const std::string answer = get(target);
        INFO(answer.substr(0, 300));
        REQUIRE(status_of(answer) == 200);
        return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
    }
    int end(int signal) {
        ::kill(child_, signal);
        int status = 0;
        ::waitpid(child_, &status, 0);
        child_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    std::string url, token;
    std::uint16_t port = 0;

  private:
    TempDir cache_;  // not the cache of whoever runs the tests
    pid_t child_ = -1;
};

std::string cube_target(const nlohmann::json& city, std::size_t root) {
    std::string target = "/api/cube/" + city["levels_key"].get<std::string>();
    for (const auto& number : city["roots"][root]) target += "/" + number.dump();
    return target;
}

}  // namespace

TEST_CASE("a city is shown as status tells it, looking changes nothing, and builds do not disturb it") {
    const SmallCity small;
    const auto before = tree(small.city);
    const auto status = run_json({"status", small.city});
    Viewer viewer({small.city});
    const auto city = viewer.get_json("/api/city");
    for (const char* key :
         {"generation", "splats", "points", "digest", "created", "note", "tile_size_m", "crs"}) {
        INFO(key);
        CHECK(city[key] == status[key]);
    }
    CHECK(city["tiles"].size() <= status["tiles"]);
    CHECK(city["inputs"].size() == status["inputs"].size());
    CHECK(city["inputs"][0] == status["inputs"][0]["path"]);
    CHECK(viewer.get_json("/api/path")["poses"].size() > 3);
    for (std::size_t i = 0; i < city["roots"].size(); ++i)
        CHECK(status_of(viewer.get(cube_target(city, i))) == 200);
    const auto& box = city["tiles"][0];
    const auto picked =
        viewer.get_json("/api/pick?o=" + box[10].dump() + "," + box[11].dump() + ",90&d=0.1,0.1,-1");
    CHECK(picked.contains("hit"));
    CHECK(viewer.end(SIGINT) == 0);
    CHECK(tree(small.city) == before);

    // A generation stays as it is while another is published and garbage is collected.
    Viewer pinned({small.city});
    const auto first = pinned.get_json("/api/city");
    run_json({"build", small.city, small.drive, "--trajectory", small.trajectory, "--classes", "synthetic",
              "--tile-size", "16"});
    run_json({"gc", small.city});
    for (std::size_t i = 0; i < first["roots"].size(); ++i)
        CHECK(status_of(pinned.get(cube_target(first, i))) == 200);
    CHECK(pinned.get_json("/api/progress")["missing"].empty());
    CHECK(pinned.get_json("/api/city") == first);
    CHECK(pinned.end(SIGTERM) == 0);

    // Other tiles, the same levels.
    Viewer next({small.city});
    const auto second = next.get_json("/api/city");
    CHECK(second["generation"] != first["generation"]);
    CHECK(second["levels_key"] == first["levels_key"]);
    CHECK(second["roots"] == first["roots"]);

    // The largest payload is of the first generation, which has larger tiles. It is named when it is damaged.
    small.damage();
    Viewer damaged({small.city, "--generation", first["generation"].dump()});
    for (std::size_t i = 0; i < first["roots"].size(); ++i)
        CHECK(status_of(damaged.get(cube_target(first, i))) == 200);
    const auto missing = damaged.get_json("/api/progress")["missing"];
    REQUIRE(missing.size() == 1);
    CHECK(missing[0]["reason"].get<std::string>().find("tile") != std::string::npos);
}

TEST_CASE("levels are made ahead, and looking with them reads no splat") {
    const SmallCity small;
    const TempDir levels;
    const auto made = run_json({"view", small.city, "--make-levels", "--levels", levels.path()});
    CHECK(made["missing"] == 0);
    CHECK(made["kept_bytes"] > 0);
    const auto before = tree(small.city);
    Viewer viewer({small.city, "--levels", levels.path()});
    const auto city = viewer.get_json("/api/city");
    CHECK(city["levels_key"] == made["levels_key"]);
    for (std::size_t i = 0; i < city["roots"].size(); ++i)
        CHECK(status_of(viewer.get(cube_target(city, i))) == 200);
    CHECK(viewer.get_json("/api/progress")["done"] == 0);
    CHECK(tree(small.city) == before);
    const auto none = test::citysplat({"view", small.city, "--make-levels", "--levels-size", "0"});
    CHECK(none.exit_code == 2);
}

TEST_CASE("slow and half-open clients are closed within 15 s, and an honest one is served within one",
          "[slow]") {
    const SmallCity small;
    Viewer viewer({small.city});
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const auto begin = Clock::now();
    std::vector<std::unique_ptr<Connection>> silent, started;
    for (int i = 0; i < 24; ++i) {
        silent.push_back(std::make_unique<Connection>(viewer.port));
        started.push_back(std::make_unique<Connection>(viewer.port));
        started.back()->send("GET / HTTP/1.1\r\nHost: x\r\nA: ");
    }
    Connection drip(viewer.port);
    drip.send("GET / HTTP/1.1\r\nA: ");
    auto dripped = std::async(std::launch::async, [&] {
        while (drip.send("x")) std::this_thread::sleep_for(std::chrono::seconds(1));
        return seconds_since(begin);
    });
    std::atomic<bool> all_closed{false};
    auto honest = std::async(std::launch::async, [&] {
        double slowest = 0;
        while (!all_closed) {
            const auto asked = Clock::now();
            CHECK(status_of(viewer.get("/api/progress")) == 200);
            slowest = std::max(slowest, seconds_since(asked));
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return slowest;
    });
    for (auto& client : silent) client->read_to_end();
    for (auto& client : started) client->read_to_end();
    const double closed = seconds_since(begin), drip_closed = dripped.get();
    all_closed = true;
    const double slowest = honest.get();
    WARN("closed after " << closed << " s, one byte a second after " << drip_closed
                         << " s; the slowest honest answer took " << slowest << " s");
    CHECK(closed <= 15);
    CHECK(drip_closed <= 16);  // it notices with its next byte
    CHECK(slowest < 1);
}

TEST_CASE("build --lod keeps the levels that view shows") {
    const SmallCity small;
    const TempDir levels;
    const auto built =
        run_json({"build", small.city, small.drive, "--trajectory", small.trajectory, "--classes",
                  "synthetic", "--tile-size", "16", "--lod", "--levels", levels.path()});
    CHECK(built["levels"]["missing"] == 0);
    CHECK(built["levels"]["kept_bytes"] > 0);
    Viewer viewer({small.city, "--levels", levels.path(), "--no-check"});
    const auto city = viewer.get_json("/api/city");
    CHECK(city["levels_key"] == built["levels"]["levels_key"]);
    for (std::size_t i = 0; i < city["roots"].size(); ++i)
        CHECK(status_of(viewer.get(cube_target(city, i))) == 200);
    CHECK(viewer.get_json("/api/progress")["done"] == 0);
    CHECK(viewer.get_json("/api/progress")["checked"].is_null());
    CHECK(test::citysplat({"build", small.city, small.drive, "--lod", "--dry-run"}).exit_code == 2);
}

TEST_CASE("view says what is wrong with its arguments") {
    const TempDir dir;
    CHECK(test::citysplat({"view", dir / "nothing"}).exit_code == 78);
    CHECK(test::citysplat({"view", dir / "nothing", "--port", "80"}).exit_code == 2);
    CHECK(test::citysplat({"view", dir / "nothing", "--host", "0.0.0.0"}).exit_code == 2);
    const SmallCity small;
    std::ofstream(dir / "cloud.ply")
        << "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
           "property float z\nend_header\n1 2 3\n";
    const auto refused = test::citysplat({"view", small.city, "--distances", dir / "cloud.ply"});
    CHECK(refused.exit_code != 0);
    CHECK(refused.err.find("compare --distances") != std::string::npos);
    CHECK(test::citysplat({"view", small.city, "--distances", dir / "nothing.ply"}).exit_code != 0);
    CHECK(test::citysplat({"compare", small.drive, "--truth", small.drive, "--distances", dir / "x.ply"})
              .exit_code == 2);
    CHECK(!fs::exists(dir / "x.ply"));
}
