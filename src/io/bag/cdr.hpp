#pragma once

#include "core/error.hpp"
#include "io/bytes_le.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// CDR, version 1, little endian: how ROS 2 serialises messages. Four bytes name the encoding; behind them
/// every number is aligned to its own size, counted from there.
namespace citysplat::io {

/// Appends one message to a buffer.
class CdrWriter {
  public:
    explicit CdrWriter(std::vector<std::byte>& out) : out_(out) {
        out_.insert(out_.end(), {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{0}});
        begin_ = out_.size();
    }

    template <class T>
    requires std::is_arithmetic_v<T>
    void number(T value) {
        align(sizeof value);
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        out_.insert(out_.end(), bytes, bytes + sizeof value);
    }
    template <class... T>
    void numbers(T... values) {
        (number(values), ...);
    }
    /// Its length counts the zero at its end.
    void text(std::string_view s) {
        number(static_cast<std::uint32_t>(s.size() + 1));
        const auto* bytes = reinterpret_cast<const std::byte*>(s.data());
        out_.insert(out_.end(), bytes, bytes + s.size());
        out_.push_back(std::byte{0});
    }
    void align(std::size_t size) {
        while ((out_.size() - begin_) % size != 0) out_.push_back(std::byte{0});
    }

  private:
    std::vector<std::byte>& out_;
    std::size_t begin_;
};

/// Reads one message, of either byte order. What does not fit is an InputError that begins with `where`.
class CdrReader {
  public:
    CdrReader(std::span<const std::byte> message, std::string where)
        : bytes_(message), where_(std::move(where)) {
        if (message.size() < 4) fail("is shorter than the header of its encoding");
        const auto kind = std::to_integer<unsigned>(message[1]);
        if (message[0] != std::byte{0} || kind > 1) fail("is not in plain CDR; other encodings are not read");
        big_ = kind == 0;
        bytes_ = message.subspan(4);
    }

    template <class T>
    requires std::is_arithmetic_v<T> T number() {
        at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        const std::byte* from = take(sizeof(T)).data();
        return big_ ? load_be<T>(from) : load_le<T>(from);
    }
    std::string_view text() {
        const auto length = number<std::uint32_t>();
        if (length == 0) return {};  // some writers leave out the zero of an empty text
        const auto bytes = take(length);
        if (bytes.back() != std::byte{0}) fail("has a text without its end");
        return {reinterpret_cast<const char*>(bytes.data()), length - 1};
    }
    /// The length of a sequence whose items take at least that many bytes.
    std::uint32_t count(std::size_t least_item_bytes) {
        const auto n = number<std::uint32_t>();
        if (n > left() / least_item_bytes)
            fail("claims " + std::to_string(n) + " items where " + std::to_string(left()) +
                 " bytes are left");
        return n;
    }
    std::span<const std::byte> take(std::size_t bytes) {
        if (at_ > bytes_.size() || bytes > bytes_.size() - at_)
            fail("ends after " + std::to_string(bytes_.size()) + " bytes, in the middle of a field");
        const auto part = bytes_.subspan(at_, bytes);
        at_ += bytes;
        return part;
    }
    std::size_t left() const { return at_ < bytes_.size() ? bytes_.size() - at_ : 0; }
    bool big_endian() const { return big_; }
    [[noreturn]] void fail(const std::string& why) const {
        throw InputError(where_ + ": the message " + why);
    }

  private:
    std::span<const std::byte> bytes_;
    std::string where_;
    std::size_t at_ = 0;
    bool big_ = false;
};

}  // namespace citysplat::io
