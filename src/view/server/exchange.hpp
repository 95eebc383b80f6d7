#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a browser asks and what it is told, without sockets: everything between is a pure function, so that
/// it can be tested and fuzzed alone.
namespace citysplat::view {

struct Header {
    std::string name, value;
};

struct Request {
    std::string method;
    std::string target;  ///< path and query as they came, nothing decoded
    std::vector<Header> headers;

    /// How often a header is there, whatever its case.
    std::size_t count(std::string_view name) const;
    /// Its value when it is there exactly once.
    std::optional<std::string_view> only(std::string_view name) const;
};

struct Response {
    int status = 200;
    std::vector<Header> headers;
    std::string body;
    /// More of the body, kept alive by `owner`: large columns are sent from where they are.
    std::span<const std::byte> tail;
    std::shared_ptr<const void> owner;

    std::size_t body_bytes() const { return body.size() + tail.size(); }
    const std::string* header(std::string_view name) const;
};

/// One line of plain text.
Response text_response(int status, const std::string& line);
Response json_response(std::string json);

}  // namespace citysplat::view
