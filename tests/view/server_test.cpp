#include "core/error.hpp"
#include "view/http_client.hpp"
#include "view/server/http_server.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

using namespace citysplat;
using namespace citysplat::view;
using test::Connection;
using test::status_of;

namespace {

/// Tells what it was asked.
Response echo(const Request& request, const CancelToken&) {
    Response response = text_response(200, request.method + " " + request.target);
    for (const Header& header : request.headers) response.body += header.name + "=" + header.value + "\n";
    return response;
}

std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

struct Running {
    HttpServer server;
    explicit Running(HttpServer::Handler handler = echo, const ServerOptions& options = {})
        : server(options) {
        server.start(std::move(handler));
    }
    std::string ask(const std::string& bytes) {
        Connection client(server.port());
        client.send(bytes);
        return client.read_answer();
    }
};

}  // namespace

TEST_CASE("several requests of one connection are answered in turn") {
    Running running;
    Connection client(running.server.port());
    for (int i = 0; i < 3; ++i) {
        REQUIRE(client.send(get("/" + std::to_string(i))));
        const std::string answer = client.read_answer();
        CHECK(status_of(answer) == 200);
        CHECK(answer.find("GET /" + std::to_string(i) + "\n") != std::string::npos);
    }
    CHECK(running.server.answered() == 3);
}

TEST_CASE("what is asked arrives as it was sent") {
    Running running;
    CHECK(running.ask(get("/a%2Fb%00?x=%41&y")).find("GET /a%2Fb%00?x=%41&y\n") != std::string::npos);
    // The handler sees both hosts, and a NUL in the address.
    const std::string two = running.ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    CHECK(two.find("Host=a\nHost=b\n") != std::string::npos);
    const std::string cut = running.ask(std::string("GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n", 31));
    CHECK((status_of(cut) == 400 || cut.find(std::string("GET /a\0\n", 8)) != std::string::npos));
}

TEST_CASE("HEAD has the length and no body") {
    Running running;
    Connection client(running.server.port());
    client.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_answer(false);
    CHECK(status_of(answer) == 200);
    CHECK(answer.find("Content-Length: 15") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\n"));
}

TEST_CASE("the two parts of a large body follow each other") {
    const auto tail = std::make_shared<std::vector<std::byte>>(3'000'000, std::byte{'t'});
    Running running([&](const Request&, const CancelToken&) {
        Response response = text_response(200, std::string(99'999, 'h'));
        response.tail = *tail;
        response.owner = tail;
        return response;
    });
    const std::string answer = running.ask(get("/"));
    const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
    std::string expected(99'999, 'h');
    expected.append(1, '\n').append(3'000'000, 't');
    CHECK(body == expected);
}

TEST_CASE("malformed requests end in a refusal, and the server goes on") {
    Running running;
    std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 100; ++i) many += "A" + std::to_string(i) + ": b\r\n";
    CHECK(status_of(running.ask(many + "\r\n")) == 431);
    CHECK(status_of(running.ask("GET / HTTP/1.1\r\nA: " + std::string(1'000'000, 'b') + "\r\n\r\n")) != 200);
    for (const std::string& bytes :
         {std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("\0\0\0\r\n\r\n", 7),
          std::string("GET / HTTP/9.9\r\n\r\n"),
          std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
          std::string("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
        Connection client(running.server.port());
        client.send(bytes);
        // Refused, or waited for until the deadline: both are fine, here it is only let go.
    }
    CHECK(status_of(running.ask(get("/"))) == 200);
}

TEST_CASE("clients that are slow or half open are cut off while an honest one is served") {
    ServerOptions options;
    options.header_deadline_s = 1;
    Running running(echo, options);
    std::vector<std::unique_ptr<Connection>> silent, started;
    for (int i = 0; i < 24; ++i) {
        silent.push_back(std::make_unique<Connection>(running.server.port()));
        started.push_back(std::make_unique<Connection>(running.server.port()));
        started.back()->send("GET / HTTP/1.1\r\nHost: x\r\nA: ");
    }
    // One more byte whenever the server looks away: never silent, and never done.
    Connection drip(running.server.port());
    drip.send("GET / HTTP/1.1\r\nA: ");
    auto cut = std::async(std::launch::async, [&] {
        while (drip.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return true;
    });
    CHECK(status_of(running.ask(get("/"))) == 200);
    for (auto& client : silent) CHECK(client->is_closed());
    for (auto& client : started) client->read_to_end();
    CHECK(cut.get());
    CHECK(status_of(running.ask(get("/"))) == 200);
}

TEST_CASE("more idle clients than the server takes keep nobody waiting, and cut off no answer") {
    ServerOptions options;
    options.header_deadline_s = 3600;  // no deadline helps
    std::atomic<bool> begun{false}, may_end{false};
    Running running(
        [&](const Request& request, const CancelToken& cancel) {
            begun = begun || request.target == "/slow";
            while (request.target == "/slow" && !may_end && !cancel.requested())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return echo(request, cancel);
        },
        options);
    Connection slow(running.server.port());
    slow.send(get("/slow"));
    while (!begun) std::this_thread::yield();
    std::vector<std::unique_ptr<Connection>> idle;
    for (int i = 0; i < 300; ++i) {
        idle.push_back(std::make_unique<Connection>(running.server.port()));
        if (i % 2 == 0) idle.back()->send("GET / HTTP/1.1\r\nHost: x\r\nA: ");
    }
    CHECK(status_of(running.ask(get("/"))) == 200);
    may_end = true;
    CHECK(status_of(slow.read_answer()) == 200);
}

TEST_CASE("a client that does not take its answer is cut off") {
    ServerOptions options;
    options.header_deadline_s = 1;
    options.least_bytes_per_s = 1'000'000'000;
    const auto tail = std::make_shared<std::vector<std::byte>>(50'000'000, std::byte{'t'});
    Running running(
        [&](const Request&, const CancelToken&) {
            Response response = text_response(200, "");
            response.tail = *tail;
            response.owner = tail;
            return response;
        },
        options);
    Connection client(running.server.port());
    client.send(get("/"));
    while (tail.use_count() < 2) std::this_thread::yield();  // it is being sent
    while (tail.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it is let go
    CHECK(client.read_to_end().size() < 50'000'000);
}

TEST_CASE("a slow answer keeps nobody waiting, and ends with the server") {
    std::atomic<bool> begun{false};
    auto running = std::make_unique<Running>([&](const Request& request, const CancelToken& cancel) {
        if (request.target == "/slow") {
            begun = true;
            while (!cancel.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return echo(request, cancel);
    });
    std::vector<std::unique_ptr<Connection>> slow;
    for (int i = 0; i < 6; ++i) {
        slow.push_back(std::make_unique<Connection>(running->server.port()));
        slow.back()->send(get("/slow"));
    }
    while (!begun) std::this_thread::yield();
    CHECK(status_of(running->ask(get("/quick"))) == 200);
    running.reset();
    for (auto& client : slow) client->read_to_end();
}

TEST_CASE("quick requests are answered while more slow ones than there are workers wait") {
    ServerOptions options;
    options.is_slow = [](std::string_view target) { return target.starts_with("/slow"); };
    std::atomic<int> begun{0};
    Running running(
        [&](const Request& request, const CancelToken& cancel) {
            if (request.target == "/slow") {
                ++begun;
                while (!cancel.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            return echo(request, cancel);
        },
        options);
    std::vector<std::unique_ptr<Connection>> slow;
    for (int i = 0; i < 20; ++i) {
        slow.push_back(std::make_unique<Connection>(running.server.port()));
        slow.back()->send(get("/slow"));
    }
    while (begun < options.workers - options.quick_workers) std::this_thread::yield();
    for (int i = 0; i < 5; ++i) CHECK(status_of(running.ask(get("/quick"))) == 200);
    CHECK(begun == options.workers - options.quick_workers);
}

TEST_CASE("the server listens on loopback and nowhere else") {
    Running running;
    std::ostringstream port;
    port << std::uppercase << std::hex << running.server.port();
    std::ifstream table("/proc/net/tcp");
    std::size_t listening = 0;
    for (std::string line; std::getline(table, line);)
        if (line.find(":" + port.str() + " 00000000:0000 0A") != std::string::npos) {
            ++listening;
            CHECK(line.find("0100007F:" + port.str()) != std::string::npos);
        }
    CHECK(listening == 1);
    std::ifstream table6("/proc/net/tcp6");
    for (std::string line; std::getline(table6, line);)
        CHECK(line.find(":" + port.str() + " 00000000000000000000000000000000:0000 0A") == std::string::npos);
}

TEST_CASE("a port that is taken is named") {
    Running running;
    ServerOptions options;
    options.port = running.server.port();
    CHECK_THROWS_WITH(HttpServer(options), Catch::Contains("port " + std::to_string(options.port)));
}
