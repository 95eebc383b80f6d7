#include "house/source_tree.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>

namespace citysplat::test {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The text with comments, strings and lines of the preprocessor replaced by spaces; lines stay lines.
std::string code_of(const std::string& text) {
    std::string code = text;
    const auto blank = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < std::min(end, code.size()); ++i)
            if (code[i] != '\n') code[i] = ' ';
        return end;
    };
    for (std::size_t i = 0; i < code.size();) {
        if (code.compare(i, 2, "//") == 0) {
            i = blank(i, std::min(code.find('\n', i), code.size()));
        } else if (code.compare(i, 2, "/*") == 0) {
            i = blank(i, std::min(code.find("*/", i), code.size()) + 2);
        } else if (code.compare(i, 2, "R\"") == 0) {
            const std::string end = ")" + code.substr(i + 2, code.find('(', i) - i - 2) + "\"";
            i = blank(i, std::min(code.find(end, i), code.size()) + end.size());
        } else if (code[i] == '"' || (code[i] == '\'' && (i == 0 || !is_word(code[i - 1])))) {
            std::size_t end = i + 1;
            while (end < code.size() && code[end] != code[i]) end += code[end] == '\\' ? 2 : 1;
            i = blank(i, end + 1);
        } else if (code[i] == '#') {
            std::size_t end = code.find('\n', i);
            while (end != std::string::npos && code[end - 1] == '\\') end = code.find('\n', end + 1);
            i = blank(i, std::min(end, code.size()));
        } else {
            ++i;
        }
    }
    return code;
}

/// Follows the brackets of a declaration. An angle bracket counts behind a word only.
class Depth {
  public:
    void pass(const std::string& s, std::size_t i) {
        const char c = s[i];
        if (c == '(' || c == '[' || c == '{') ++depth_;
        if (c == ')' || c == ']' || c == '}') --depth_;
        if (c == '<' && i > 0 && is_word(s[i - 1])) ++angles_;
        if (c == '>' && angles_ > 0 && s[i - 1] != '-') --angles_;
    }
    bool outside() const { return depth_ == 0 && angles_ == 0; }

  private:
    int depth_ = 0, angles_ = 0;
};

/// What stands before the `;` or `{` of a declaration, if that is a function.
bool read_function(const std::string& s, FunctionSeen& function) {
    Depth depth;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (depth.outside() && s[i] == '=' && s.find("operator") == std::string::npos) return false;
        if (depth.outside() && s[i] == '(' && i > 0 && is_word(s[i - 1])) {
            std::size_t begin = i;
            while (begin > 0 && is_word(s[begin - 1])) --begin;
            function.name = s.substr(begin, i - begin);
            static const std::vector<std::string> no_functions{
                "requires", "noexcept", "decltype", "static_assert", "alignas", "__attribute__", "TEST_CASE"};
            if (std::find(no_functions.begin(), no_functions.end(), function.name) == no_functions.end()) {
                Depth inside;
                bool any = false;
                std::size_t commas = 0;
                for (std::size_t k = i + 1; k < s.size() && !(s[k] == ')' && inside.outside()); ++k) {
                    if (s[k] == ',' && inside.outside()) ++commas;
                    any = any || std::isspace(static_cast<unsigned char>(s[k])) == 0;
                    inside.pass(s, k);
                }
                function.parameters = any ? commas + 1 : 0;
                return true;
            }
        }
        depth.pass(s, i);
    }
    return false;
}

/// Where the body ends that begins with the brace at `i`. Braces of members that a constructor initialises
/// come before it.
std::size_t end_of_body(const std::string& code, std::size_t i) {
    for (;;) {
        for (int open = 1; open > 0 && ++i < code.size();)
            open += code[i] == '{' ? 1 : code[i] == '}' ? -1 : 0;
        const std::size_t next = code.find_first_not_of(" \n", i + 1);
        if (next == std::string::npos || (code[next] != ',' && code[next] != '{')) return i;
        const std::size_t brace = code.find('{', next);
        if (brace == std::string::npos) return i;
        i = brace;
    }
}

}  // namespace

std::string SourceFile::folder() const { return std::filesystem::path(path).parent_path().string(); }
bool SourceFile::is_header() const { return path.ends_with(".hpp"); }
std::size_t SourceFile::lines() const {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<SourceFile> read_sources(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders) {
    static const std::regex include("#include ([<\"])([^>\"]+)[>\"]");
    std::vector<SourceFile> files;
    for (const std::string& folder : folders)
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".hpp" && extension != ".cpp" && extension != ".cu") continue;
            std::ifstream in(entry.path(), std::ios::binary);
            SourceFile file{std::filesystem::relative(entry.path(), root).generic_string(),
                            std::string(std::istreambuf_iterator<char>(in), {}),
                            {},
                            {}};
            for (auto m = std::sregex_iterator(file.text.begin(), file.text.end(), include);
                 m != std::sregex_iterator(); ++m)
                ((*m)[1] == "<" ? file.others : file.ours).push_back((*m)[2]);
            files.push_back(std::move(file));
        }
    std::sort(files.begin(), files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return files;
}

std::vector<FunctionSeen> functions_of(const std::string& text) {
    static const std::regex scope(R"(\b(namespace|class|struct|union|enum)\b|extern\s*$)");
    const std::string code = code_of(text);
    std::vector<FunctionSeen> functions;
    std::size_t begin = 0;
    const auto finish = [&](std::size_t end) {
        FunctionSeen function;
        const std::string declaration = code.substr(begin, end - begin);
        const bool found = read_function(declaration, function);
        if (found) {
            const std::size_t first = begin + declaration.find_first_not_of(" \n");
            function.line = 1 + static_cast<std::size_t>(std::count(
                                    text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first), '\n'));
            functions.push_back(function);
        }
        return found;
    };
    int parentheses = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
        const char c = code[i];
        if (c == '(') ++parentheses;
        if (c == ')') --parentheses;
        if (parentheses > 0) continue;
        if (c == ';') {
            finish(i);
            begin = i + 1;
        } else if (c == '}') {
            begin = i + 1;
        } else if (c == '{') {
            if (finish(i) || !std::regex_search(code.substr(begin, i - begin), scope))
                i = end_of_body(code, i);
            begin = i + 1;
        }
    }
    return functions;
}

}  // namespace citysplat::test
