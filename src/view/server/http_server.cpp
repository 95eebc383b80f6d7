#include "view/server/http_server.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <malloc.h>
#include <microhttpd.h>
#include <mutex>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace citysplat::view {

namespace {

using Clock = std::chrono::steady_clock;

/// More would be no request of a browser.
constexpr std::size_t kMostHeaders = 64, kConnectionBytes = 32768;

/// Connections that are kept free for new ones: more than the library accepts before it looks at those that
/// were cut, which is ten.
constexpr std::size_t kFreeConnections = 16;

/// A connection as the watchman sees it.
struct Watched {
    int socket;
    Clock::time_point deadline;  ///< when it must have sent its request, or taken its answer
    enum class Phase {
        waiting,  ///< for a request, or for the rest of one
        working,  ///< a worker has its request: no deadline
        taking,   ///< it takes an answer
        cut,      ///< shut down by us; the library closes it soon
    };
    Phase phase = Phase::waiting;
};

/// A request on its way through the queue.
struct Pending {
    const char* raw_target = nullptr;  ///< as the library has it in its buffer
    MHD_Connection* connection = nullptr;
    enum class Stage { begun, collected, asked, answered };
    std::atomic<Stage> stage{Stage::begun};
    Request request;
    Response response;
};

/// The loopback address and nothing else.
int listening_socket(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) throw IoError(std::string("cannot open a socket: ") + std::strerror(errno));
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket, SOMAXCONN) != 0) {
        const std::string reason = std::strerror(errno);
        ::close(socket);
        throw IoError("cannot listen on port " + std::to_string(port) + " of 127.0.0.1: " + reason +
                      "; give another --port, or none");
    }
    return socket;
}

std::uint16_t port_of(int socket) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

/// Names and values as they came. A request with too many has one that no rule lets pass.
MHD_Result collect_header(void* out, MHD_ValueKind, const char* name, const char* value) {
    auto& headers = *static_cast<std::vector<Header>*>(out);
    if (headers.size() >= kMostHeaders) return MHD_NO;
    headers.push_back({name, value ? value : ""});
    return MHD_YES;
}

/// Copies the part of a body from `at` on.
ssize_t read_body(void* context, std::uint64_t at, char* out, std::size_t most) {
    const Response& response = *static_cast<const Response*>(context);
    if (at >= response.body_bytes()) return MHD_CONTENT_READER_END_OF_STREAM;
    std::size_t copied = 0;
    if (at < response.body.size()) copied = response.body.copy(out, most, at);
    const std::size_t from = at + copied - response.body.size();
    if (at + copied >= response.body.size() && copied < most && from < response.tail.size()) {
        const std::size_t n = std::min(most - copied, response.tail.size() - from);
        std::memcpy(out + copied, response.tail.data() + from, n);
        copied += n;
    }
    return static_cast<ssize_t>(copied);
}

void free_response(void* context) { delete static_cast<Response*>(context); }

MHD_Result queue(MHD_Connection* connection, Response&& answer) {
    const int status = answer.status;
    const std::vector<Header> headers = answer.headers;
    auto owned = std::make_unique<Response>(std::move(answer));
    constexpr std::size_t kBlockBytes = 65536;
    MHD_Response* response = MHD_create_response_from_callback(owned->body_bytes(), kBlockBytes, &read_body,
                                                               owned.get(), &free_response);
    if (!response) return MHD_NO;
    owned.release();
    for (const Header& header : headers)
        MHD_add_response_header(response, header.name.c_str(), header.value.c_str());
    const MHD_Result result = MHD_queue_response(connection, static_cast<unsigned>(status), response);
    MHD_destroy_response(response);
    return result;
}

/// The library decodes nothing: our addresses have no escapes.
std::size_t keep_escapes(void*, MHD_Connection*, char* text) { return std::strlen(text); }

void* begin_request(void*, const char* target, MHD_Connection* connection) {
    auto* pending = new Pending;
    pending->raw_target = target;
    pending->connection = connection;
    pending->request.target = target;
    return pending;
}

}  // namespace

struct HttpServer::State {
    ServerOptions options;
    int socket = -1;
    std::uint16_t port = 0;
    Handler handler;
    CancelToken cancel;
    MHD_Daemon* daemon = nullptr;
    std::atomic<std::uint64_t> answered{0};

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Pending*> requests;
    bool stopping = false;
    std::vector<std::thread> threads;

    std::mutex watch_mutex;
    std::condition_variable watch_wake;
    std::set<Watched*> watched;

    Clock::time_point header_deadline() const {
        return Clock::now() + std::chrono::seconds(options.header_deadline_s);
    }

    /// The first request in the queue for a worker, or nullptr. Requires the mutex.
    Pending* take(bool takes_slow) {
        const auto found = std::find_if(requests.begin(), requests.end(), [&](const Pending* pending) {
            return takes_slow || !options.is_slow || !options.is_slow(pending->request.target);
        });
        if (found == requests.end()) return nullptr;
        Pending* pending = *found;
        requests.erase(found);
        return pending;
    }

    void work(bool takes_slow) {
        for (;;) {
            Pending* pending = nullptr;
            {
                std::unique_lock lock(mutex);
                wake.wait(lock, [&] {
                    pending = take(takes_slow);
                    return pending || stopping;
                });
                if (!pending) return;
            }
            MHD_Connection* connection = pending->connection;
            pending->response = handler(pending->request, cancel);
            ++answered;
            pending->stage.store(Pending::Stage::answered, std::memory_order_release);
            MHD_resume_connection(connection);
        }
    }

    static void cut(Watched& connection) {
        ::shutdown(connection.socket, SHUT_RDWR);
        connection.phase = Watched::Phase::cut;
    }

    void watch() {
        std::unique_lock lock(watch_mutex);
        while (!cancel.requested()) {
            watch_wake.wait_for(lock, std::chrono::milliseconds(500));
            const auto now = Clock::now();
            for (Watched* connection : watched)
                if (connection->phase != Watched::Phase::working && now > connection->deadline)
                    cut(*connection);
        }
    }

    /// Cuts the connection that has waited longest without a request when few are free. Requires
    /// watch_mutex.
    void make_room() {
        std::size_t open = 0;
        Watched* longest = nullptr;
        for (Watched* connection : watched) {
            if (connection->phase != Watched::Phase::cut) ++open;
            if (connection->phase == Watched::Phase::waiting &&
                (!longest || connection->deadline < longest->deadline))
                longest = connection;
        }
        if (longest && open + kFreeConnections >= options.most_connections) cut(*longest);
    }

    Watched* watched_of(MHD_Connection* connection) const {
        const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return info ? static_cast<Watched*>(info->socket_context) : nullptr;
    }

    void set_phase(MHD_Connection* connection, Watched::Phase phase, Clock::time_point deadline) {
        const std::lock_guard lock(watch_mutex);
        if (Watched* w = watched_of(connection)) {
            w->phase = phase;
            w->deadline = deadline;
        }
    }

    /// Whether the address holds a NUL: the library cuts it there. In its buffer the version follows the
    /// address after one blank.
    static bool is_cut(const Pending& pending, const char* version) {
        return version != pending.raw_target + pending.request.target.size() + 1;
    }

    /// The headers are complete. A request with a body is answered at once, which is a refusal.
    MHD_Result collect(MHD_Connection* connection, Pending& pending, const char* method,
                       const char* version) {
        pending.stage = Pending::Stage::collected;
        Request& request = pending.request;
        request.method = method;
        MHD_get_connection_values(connection, MHD_HEADER_KIND, &collect_header, &request.headers);
        if (is_cut(pending, version)) request.target += '\0';
        if (request.headers.size() >= kMostHeaders)
            return queue(connection, text_response(431, "too many headers"));
        const auto length = request.only("Content-Length");
        if (request.count("Transfer-Encoding") == 0 &&
            (request.count("Content-Length") == 0 || length == "0"))
            return MHD_YES;
        return queue(connection, handler(request, cancel));
    }

    /// Hands a complete request to the workers.
    MHD_Result ask(MHD_Connection* connection, Pending& pending) {
        const std::lock_guard lock(mutex);
        if (stopping) return queue(connection, text_response(503, "the viewer is ending"));
        pending.stage = Pending::Stage::asked;
        set_phase(connection, Watched::Phase::working, {});
        MHD_suspend_connection(connection);
        requests.push_back(&pending);
        wake.notify_all();  // not every worker takes every request
        return MHD_YES;
    }

    MHD_Result give(MHD_Connection* connection, Pending& pending) {
        const auto bytes = static_cast<std::int64_t>(pending.response.body_bytes());
        set_phase(connection, Watched::Phase::taking,
                  header_deadline() + std::chrono::seconds(bytes / options.least_bytes_per_s));
        return queue(connection, std::move(pending.response));
    }
};

namespace {

// parameters: as libmicrohttpd calls it.
MHD_Result on_request(void* context, MHD_Connection* connection, const char*, const char* method,
                      const char* version, const char*, std::size_t* upload_bytes, void** request) {
    auto& state = *static_cast<HttpServer::State*>(context);
    auto& pending = *static_cast<Pending*>(*request);
    switch (pending.stage.load(std::memory_order_acquire)) {
        case Pending::Stage::begun:
            return state.collect(connection, pending, method, version);
        case Pending::Stage::collected:
            if (*upload_bytes == 0) return state.ask(connection, pending);
            *upload_bytes = 0;  // refused already
            return MHD_YES;
        case Pending::Stage::asked:
            return MHD_YES;
        case Pending::Stage::answered:
            return state.give(connection, pending);
    }
    return MHD_NO;
}

void on_completed(void* context, MHD_Connection* connection, void** request, MHD_RequestTerminationCode) {
    auto& state = *static_cast<HttpServer::State*>(context);
    delete static_cast<Pending*>(*request);
    *request = nullptr;
    state.set_phase(connection, Watched::Phase::waiting, state.header_deadline());
}

void on_connection(void* context, MHD_Connection* connection, void** socket_context,
                   MHD_ConnectionNotificationCode code) {
    auto& state = *static_cast<HttpServer::State*>(context);
    const std::lock_guard lock(state.watch_mutex);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        state.make_room();
        auto* watched = new Watched{info->connect_fd, state.header_deadline()};
        state.watched.insert(watched);
        *socket_context = watched;
    } else {
        auto* watched = static_cast<Watched*>(*socket_context);
        state.watched.erase(watched);
        delete watched;
        *socket_context = nullptr;
    }
}

}  // namespace

void return_memory_early() {
    // Blocks from this size on are mapped on their own, and unmapped when they are freed.
    constexpr int kMappedBytes = 64 << 10, kMostMapped = 16384;
    ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);
    ::mallopt(M_MMAP_MAX, kMostMapped);
    ::mallopt(M_ARENA_MAX, 4);
}

HttpServer::HttpServer(const ServerOptions& options) : state_(std::make_unique<State>()) {
    state_->options = options;
    state_->socket = listening_socket(options.port);
    state_->port = port_of(state_->socket);
}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return state_->port; }

std::uint64_t HttpServer::answered() const { return state_->answered; }

void HttpServer::start(Handler handler) {
    State& s = *state_;
    s.handler = std::move(handler);
    for (int i = 0; i < s.options.workers; ++i) {
        const bool takes_slow = i == 0 || i < s.options.workers - s.options.quick_workers;
        s.threads.emplace_back([&s, takes_slow] { s.work(takes_slow); });
    }
    s.threads.emplace_back([&s] { s.watch(); });
    s.daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &on_request, &s,
        MHD_OPTION_LISTEN_SOCKET, s.socket, MHD_OPTION_CONNECTION_LIMIT, s.options.most_connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_COMPLETED, &on_completed, &s, MHD_OPTION_NOTIFY_CONNECTION, &on_connection, &s,
        MHD_OPTION_URI_LOG_CALLBACK, &begin_request, nullptr, MHD_OPTION_UNESCAPE_CALLBACK, &keep_escapes,
        nullptr, MHD_OPTION_END);
    if (!s.daemon) {
        stop();
        throw IoError("the HTTP server cannot be started on port " + std::to_string(s.port));
    }
}

void HttpServer::stop() {
    State& s = *state_;
    s.cancel.request();
    {
        const std::lock_guard lock(s.mutex);
        s.stopping = true;
    }
    s.wake.notify_all();
    s.watch_wake.notify_all();
    for (std::thread& thread : s.threads) thread.join();
    s.threads.clear();
    if (s.daemon)
        MHD_stop_daemon(s.daemon);  // closes the socket
    else if (s.socket >= 0)
        ::close(s.socket);
    s.daemon = nullptr;
    s.socket = -1;
}

}  // namespace citysplat::view
