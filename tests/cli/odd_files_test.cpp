#include "small_city.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace test = citysplat::test;
using nlohmann::json;
using test::Outcome;
using test::TempDir;

namespace {

/// Ends after that, whatever happens: a FIFO used to hang the program for good.
Outcome within_seconds(const char* seconds, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"timeout", "-s", "KILL", seconds, test::program()});
    return test::run_program(arguments);
}

const char* kPose = "0 651000 6861000 37 0 0 0 1\n1 651001 6861000 37 0 0 0 1\n";

}  // namespace

TEST_CASE("FIFOs, devices and sockets are refused by name wherever a file is read") {
    const TempDir dir;
    const std::string fifo = dir / "fifo", socket = dir / "socket";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(socket.size() < sizeof address.sun_path);
    socket.copy(address.sun_path, socket.size());
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const std::string cloud = dir / "a.xyz", poses = dir / "a.tum";
    std::ofstream(cloud) << "1 2 3\n4 5 6\n";
    std::ofstream(poses) << kPose;
    std::ofstream(dir / "own.toml")
        << "name = \"t\"\nkind = \"table\"\ntable = \"fifo\"\nscan_hz = 10\n[range]\nmax_m = 5\n";
    std::ofstream(dir / "list") << fifo << "\n";
    std::ofstream(dir / "tracks.csv") << "time,id,x,y,z,yaw\n1,a,0,0,0,0\n2,a,1,0,0,0\n";

    const std::string city = dir / "city", out = dir / "out";
    for (const auto& [odd, kind] : {std::pair<std::string, std::string>{fifo, "FIFO"},
                                    {socket, "socket"},
                                    {"/dev/zero", "device"},
                                    {dir.path(), "directory"}}) {
        std::vector<std::vector<std::string>> commands{
            {"info", "--trajectory", odd},
            {"info", cloud, "--labels", odd},
            {"info", cloud, "--classes", odd},
            {"info", "@" + odd},
            {"build", city, cloud, "--params", odd},
            {"build", city, cloud, "--classes", odd},
            {"simulate", city, "--trajectory", poses, "--sensor", odd, "--out", out},
            {"simulate", city, "--scenario", odd, "--out", out},
            {"unpack", odd, city},
            {"render", cloud, "--along", odd, "--out", dir / "a.png"}};
        if (kind != "directory") {
            commands.push_back({"info", odd});
            commands.push_back({"bank", "build", dir / "bank", "--tracks", odd, "--scans", cloud});
            commands.push_back(
                {"bank", "build", dir / "bank", "--tracks", dir / "tracks.csv", "--scans", odd});
            commands.push_back({"calibrate", "--table", odd, "--sensor", "vlp-16", "--out", out});
            commands.push_back({"adjust", cloud, "--trajectory", odd, "--out", out});
        }
        for (const auto& command : commands) {
            if (kind == "directory" && command[command.size() - 2] == "--labels") continue;
            const Outcome outcome = within_seconds("600", command);
            INFO(command[0] << " " << command[1] << " … " << odd << ": " << outcome.err);
            CHECK((outcome.exit_code == 74 || outcome.exit_code == 65));
            CHECK_THAT(outcome.err, Catch::Contains(kind));
        }
    }
    CHECK_THAT(within_seconds("600", {"build", city, "@" + (dir / "list").string()}).err,
               Catch::Contains("FIFO"));
    ::close(fd);
}

TEST_CASE("names that are not UTF-8 are shown escaped and work like others") {
    const TempDir dir;
    const std::string odd = std::string("caf\xe9\xff"), cloud = dir / (odd + ".xyz"), city = dir / "city",
                      labels = dir / ("labels\xfe");
    std::ofstream text(cloud);
    std::filesystem::create_directory(labels);
    std::ofstream numbers(labels + "/" + odd + ".txt");
    for (int i = 0; i < 2000; ++i)
        text << i % 50 * 0.1 << " " << i / 50 * 0.1 << " 0\n", numbers << i % 2 + 1 << "\n";
    text.close(), numbers.close();

    CHECK_THAT(test::run_json({"info", cloud})["file"].get<std::string>(),
               Catch::EndsWith("caf\\xE9\\xFF.xyz"));
    const json built = test::run_json({"build", city, cloud, "--labels", labels});
    CHECK(built["points_kept"] == 2000);
    CHECK_THAT(test::run_json({"status", city}).dump(), Catch::Contains("\\\\xE9\\\\xFF"));
    CHECK_THAT(test::citysplat({"status", city, "-v"}).err + test::citysplat({"status", city, "-v"}).out,
               Catch::Contains("\\xE9\\xFF"));
    // What the city remembers are the bytes themselves.
    CHECK(test::run_json({"build", city})["published"] == false);
    std::ofstream(labels + "/" + odd + ".txt", std::ios::app) << "1\n";
    const Outcome changed = test::citysplat({"build", city, "--json"});
    CHECK(changed.exit_code == 65);
    CHECK_THAT(json::parse(changed.out)["error"]["message"].get<std::string>(),
               Catch::Contains("labels\\xFE") && Catch::Contains("2001 labels"));
    const Outcome removed = test::citysplat({"build", city, "--remove", cloud, "--json"});
    INFO(removed.err);
    CHECK(removed.exit_code == 0);

    const std::string classes = dir / "cl\xffsses.toml";
    std::ofstream(classes) << "[[class]]\nlabel = 1\nname = 'say \"hello\"'\n";
    const std::vector<std::string> with_classes{
        "build", dir / "other", cloud, "--labels", labels + "/" + odd + ".txt", "--classes", classes};
    std::filesystem::resize_file(labels + "/" + odd + ".txt", 4000);
    CHECK(test::run_json(with_classes)["published"] == true);
    CHECK(test::run_json({"build", dir / "other"})["published"] == false);
}

TEST_CASE("what a message quotes from a file is shown escaped") {
    const TempDir dir;
    std::ofstream(dir / "a.sbet") << std::string(272, '\xff');
    std::ofstream(dir / "b.tum") << "\033[31mred 1 2 3\n";
    for (const char* name : {"a.sbet", "b.tum"}) {
        const Outcome outcome = test::citysplat({"info", "--trajectory", dir / name});
        INFO(outcome.err);
        CHECK(outcome.exit_code == 65);
        CHECK(std::all_of(outcome.err.begin(), outcome.err.end(),
                          [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; }));
    }
}

TEST_CASE("info says what other verbs will refuse, and what there is nothing of") {
    const TempDir dir;
    std::ofstream(dir / "far.xyz") << "1 2 3\n1e39 2 3\n";
    std::ofstream(dir / "empty") << "# nothing yet\n";
    CHECK_THAT(test::run_json({"info", dir / "far.xyz"})["notes"].dump(),
               Catch::Contains("1e+39") && Catch::Contains("not on Earth"));
    const Outcome empty = test::citysplat({"info", "@" + (dir / "empty").string()});
    CHECK(empty.exit_code == 65);
    CHECK_THAT(empty.err, Catch::Contains("names no inputs"));
}

TEST_CASE("info says which share of a cloud's times the trajectory does not cover") {
    const TempDir dir;
    std::ofstream cloud(dir / "a.xyz");
    cloud << "x y z gps_time\n";
    for (int i = 0; i < 100; ++i) cloud << i << " 0 0 " << i * 0.1 << "\n";
    cloud.close();
    std::ofstream(dir / "half.tum") << "-1 0 0 0 0 0 0 1\n4.45 1 0 0 0 0 0 1\n";
    std::ofstream(dir / "all.tum") << "-1 0 0 0 0 0 0 1\n20 1 0 0 0 0 0 1\n";
    std::ofstream(dir / "none.tum") << "100 0 0 0 0 0 0 1\n101 1 0 0 0 0 0 1\n";
    const auto look = [&](const char* trajectory) {
        return test::run_json({"info", dir / "a.xyz", "--trajectory", dir / trajectory});
    };
    CHECK_THAT(look("half.tum")["notes"].dump(), Catch::Contains("55 % of the points (55 of 100)"));
    CHECK(look("half.tum")["points_not_covered"] == 55);
    CHECK(look("all.tum")["points_not_covered"] == 0);
    CHECK_THAT(look("none.tum")["notes"].dump(), Catch::Contains("no point has a time"));
}
