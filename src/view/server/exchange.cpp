#include "view/server/exchange.hpp"

#include <algorithm>

namespace citysplat::view {

namespace {

bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

Response with_type(int status, const char* type, std::string body) {
    Response response;
    response.status = status;
    response.headers = {{"Content-Type", type}, {"Cache-Control", "no-store"}};
    response.body = std::move(body);
    return response;
}

}  // namespace

std::size_t Request::count(std::string_view name) const {
    return static_cast<std::size_t>(std::count_if(
        headers.begin(), headers.end(), [&](const Header& header) { return same_name(header.name, name); }));
}

std::optional<std::string_view> Request::only(std::string_view name) const {
    if (count(name) != 1) return std::nullopt;
    return std::find_if(headers.begin(), headers.end(),
                        [&](const Header& header) { return same_name(header.name, name); })
        ->value;
}

const std::string* Response::header(std::string_view name) const {
    for (const Header& header : headers)
        if (same_name(header.name, name)) return &header.value;
    return nullptr;
}

Response text_response(int status, const std::string& line) {
    return with_type(status, "text/plain; charset=utf-8", line + "\n");
}

Response json_response(std::string json) {
    return with_type(200, "application/json; charset=utf-8", std::move(json));
}

}  // namespace citysplat::view
