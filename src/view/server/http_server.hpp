#pragma once

#include "core/cancel.hpp"
#include "view/server/exchange.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace citysplat::view {

struct ServerOptions {
    std::uint16_t port = 0;  ///< 0: one that is free
    int workers = 8;         ///< requests answered at a time; more than the connections a browser opens
    int quick_workers = 2;   ///< those of them that leave slow requests to the others
    bool (*is_slow)(std::string_view target) = nullptr;  ///< whether an answer may take long; nullptr: none
    unsigned most_connections = 128;
    int header_deadline_s = 10;  ///< from the connection, or the last answer, to a complete request
    int least_bytes_per_s =
        16384;  ///< an answer that is taken more slowly is cut off, after the deadline above
};

/// Gives memory that is no longer used back to the system, also from between what is still used. A viewer
/// makes and drops cubes all day; without it twice its budgets lie about. For the whole process.
void return_memory_early();

/// HTTP on 127.0.0.1 and nowhere else: no option says otherwise.
///
/// Protocol. One thread of the library reads requests. A request that is complete goes into a queue and its
/// connection sleeps; a worker answers it and wakes the connection. So a slow answer, such as the first
/// levels of a large city, keeps nobody else waiting; nor do many of them, such as those of a page that is
/// reloaded again and again, because some workers take quick requests only. A watchman looks at all
/// connections twice a second and cuts those that are past a deadline: the library itself only knows of
/// silence, and a client that sends one byte a second is never silent. When nearly all connections are taken,
/// each new one cuts the one that has waited longest without a request: many idle clients keep nobody else
/// waiting.
class HttpServer {
  public:
    using Handler = std::function<Response(const Request&, const CancelToken&)>;

    /// Listens, but answers nothing before start(): the port is known first. Throws IoError when it is taken.
    explicit HttpServer(const ServerOptions& options);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    std::uint16_t port() const;
    void start(Handler handler);
    /// Cancels what is being answered and closes all connections.
    void stop();
    std::uint64_t answered() const;

    struct State;  ///< of http_server.cpp

  private:
    std::unique_ptr<State> state_;
};

}  // namespace citysplat::view
