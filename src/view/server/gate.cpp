#include "view/server/gate.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <sys/random.h>

namespace citysplat::view {

namespace {

/// Takes the same time wherever the texts differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference |=
            static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
    return difference == 0;
}

/// None of our addresses needs an escape, so none is understood.
bool is_plain(std::string_view target) {
    return target.starts_with('/') && std::all_of(target.begin(), target.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("/._?=&,+-").find(c) != std::string_view::npos;
           });
}

}  // namespace

Gate::Gate(std::uint16_t port, std::string token) : port_(port), token_(std::move(token)) {}

std::string Gate::new_token() {
    std::array<unsigned char, 16> bits;
    if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
        throw IoError("the system gives no random numbers for the token of the viewer");
    std::string token;
    for (const unsigned char byte : bits) {
        token += "0123456789abcdef"[byte >> 4];
        token += "0123456789abcdef"[byte & 15];
    }
    return token;
}

std::optional<Response> Gate::refuse_source(const Request& request) const {
    const auto host = request.only("Host");
    if (!host) return text_response(400, "a request names its host exactly once");
    const std::string port = ":" + std::to_string(port_);
    if (*host != "127.0.0.1" + port && *host != "localhost" + port)
        return text_response(421, "this server is not the one that is asked for");
    if (request.count("Origin") > 0 && request.only("Origin") != "http://" + std::string(*host))
        return text_response(403, "only the viewer's own page may ask");
    if (request.count("Sec-Fetch-Site") > 0) {
        const auto site = request.only("Sec-Fetch-Site");
        if (site != "same-origin" && site != "none")
            return text_response(403, "only the viewer's own page may ask");
    }
    return std::nullopt;
}

std::optional<Response> Gate::refuse(const Request& request, bool needs_token) const {
    if (request.target.size() > kMostTarget) return text_response(414, "the address is too long");
    if (!is_plain(request.target))
        return text_response(400, "the address has characters that none of ours has");
    if (auto refusal = refuse_source(request)) return refusal;
    if (request.method != "GET" && request.method != "HEAD") {
        Response refusal = text_response(405, "the viewer only reads");
        refusal.headers.push_back({"Allow", "GET, HEAD"});
        return refusal;
    }
    if (request.count("Transfer-Encoding") > 0 ||
        (request.count("Content-Length") > 0 && request.only("Content-Length") != "0"))
        return text_response(400, "a request that reads has no body");
    if (needs_token) {
        const auto token = request.only("X-Citysplat-Token");
        if (!token || !equal_in_constant_time(*token, token_))
            return text_response(401, "open the address that citysplat view printed: it carries the token");
    }
    return std::nullopt;
}

void add_protection(Response& response) {
    static const std::array<Header, 7> kProtection{{
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src "
         "'self'; "
         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Embedder-Policy", "require-corp"},
        {"X-Frame-Options", "DENY"},
    }};
    response.headers.insert(response.headers.end(), kProtection.begin(), kProtection.end());
}

}  // namespace citysplat::view
