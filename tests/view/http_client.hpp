#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace citysplat::test {

/// A connection to a server on 127.0.0.1, byte by byte.
class Connection {
  public:
    explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        // Only so that a test that fails ends.
        const timeval patience{60, 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            throw std::runtime_error("cannot connect");
    }
    ~Connection() { ::close(socket_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// Whether all of it could be sent.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    /// Everything until the server closes the connection.
    std::string read_to_end() {
        std::string all;
        while (read_some(all)) {
        }
        return all;
    }
    /// One answer with a Content-Length; the connection stays open.
    std::string read_answer(bool has_body = true) {
        std::string all;
        std::size_t end;
        while ((end = all.find("\r\n\r\n")) == std::string::npos)
            if (!read_some(all)) return all;
        const std::size_t at = all.find("Content-Length: ");
        if (!has_body || at == std::string::npos) return all;
        const std::size_t wanted = end + 4 + std::stoul(all.substr(at + 16));
        while (all.size() < wanted)
            if (!read_some(all)) break;
        return all;
    }
    /// Whether the server has closed it; waits for that.
    bool is_closed() {
        std::string ignored;
        return !read_some(ignored);
    }

  private:
    bool read_some(std::string& out) {
        char block[65536];
        const ssize_t n = ::recv(socket_, block, sizeof block, 0);
        if (n <= 0) return false;
        out.append(block, static_cast<std::size_t>(n));
        return true;
    }

    int socket_;
};

inline int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

}  // namespace citysplat::test
