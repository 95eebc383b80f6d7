#pragma once

#include "view/server/exchange.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace citysplat::view {

/// Who may ask. The server listens on loopback alone, which every program and every web page on the machine
/// can reach; so a request must
///   - name this server as its host, exactly and once: a page whose name was rebound to 127.0.0.1 does not;
///   - come from the server's own page, if it says where it comes from;
///   - only read;
///   - for anything about the city carry the token, which only those know who saw the printed address.
class Gate {
  public:
    Gate(std::uint16_t port, std::string token);

    /// The refusal, or nothing when the request may pass. `needs_token` is decided by the route.
    std::optional<Response> refuse(const Request& request, bool needs_token) const;

    /// 128 random bits as 32 hexadecimal digits. Throws IoError.
    static std::string new_token();

    /// Longer targets are refused.
    static constexpr std::size_t kMostTarget = 512;

  private:
    std::optional<Response> refuse_source(const Request& request) const;

    std::uint16_t port_;
    std::string token_;
};

/// What every answer carries, so that a browser keeps the page to itself.
void add_protection(Response& response);

}  // namespace citysplat::view
