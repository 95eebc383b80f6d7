#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat {

struct Line {
    std::string_view text;  ///< without the line feed
    std::uint64_t number;
    std::size_t next;  ///< byte of the whole text behind this line
    bool ended;        ///< by a line feed; the last one need not be
};

/// The lines of a text, for a loop: for (const Line& line : Lines(text)).
class Lines {
  public:
    explicit Lines(std::string_view text, std::uint64_t first_number = 1)
        : text_(text), first_(first_number) {}

    class Iterator {
      public:
        Iterator(std::string_view text, std::size_t at, std::uint64_t number)
            : text_(text), at_(at), number_(number) {}
        Line operator*() const {
            const std::size_t end = std::min(text_.find('\n', at_), text_.size());
            return {text_.substr(at_, end - at_), number_, std::min(end + 1, text_.size()),
                    end < text_.size()};
        }
        Iterator& operator++() {
            at_ = (**this).next;
            ++number_;
            return *this;
        }
        bool operator==(const Iterator& o) const { return at_ == o.at_; }

      private:
        std::string_view text_;
        std::size_t at_;
        std::uint64_t number_;
    };
    Iterator begin() const { return {text_, 0, first_}; }
    Iterator end() const { return {text_, text_.size(), 0}; }

  private:
    std::string_view text_;
    std::uint64_t first_;
};

inline constexpr std::string_view kBlanks = " \t\r";

/// Without blanks at its ends.
inline std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// What stands between blanks.
inline std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

/// ASCII only: names of columns, extensions, sensors.
inline std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return lower;
}

}  // namespace citysplat
