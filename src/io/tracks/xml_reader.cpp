#include "io/tracks/xml_reader.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

#include <exception>
#include <expat.h>
#include <memory>

namespace citysplat::io {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr std::size_t kMostDepth = 64, kMostTextBytes = std::size_t{1} << 24;

/// Expat calls us through C: what we throw waits until it has returned.
class XmlPass {
  public:
    XmlPass(const std::string& name, XmlHandler& handler)
        : name_(name), handler_(handler), parser_(XML_ParserCreate(nullptr)) {
        if (!parser_) throw ResourceError("no memory to read " + name);
        XML_SetUserData(parser_.get(), this);
        XML_SetElementHandler(parser_.get(), on_begin, on_end);
        XML_SetCharacterDataHandler(parser_.get(), on_text);
    }

    void feed(std::string_view piece, bool last) {
        const XML_Status status =
            XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), last ? 1 : 0);
        if (failure_) std::rethrow_exception(failure_);
        if (status != XML_STATUS_OK && !done_)
            throw InputError(name_ + ": line " + std::to_string(line()) +
                             ": not XML: " + XML_ErrorString(XML_GetErrorCode(parser_.get())));
    }
    bool is_done() const { return done_; }

  private:
    struct Free {
        void operator()(XML_Parser p) const { XML_ParserFree(p); }
    };

    std::uint64_t line() const { return XML_GetCurrentLineNumber(parser_.get()); }

    template <class Do>
    void guarded(Do&& act) {
        if (failure_ || done_) return;
        try {
            act();
            done_ = handler_.is_done();
        } catch (...) {
            failure_ = std::current_exception();
        }
        if (failure_ || done_) XML_StopParser(parser_.get(), XML_FALSE);
    }

    static void on_begin(void* self, const XML_Char* name, const XML_Char** attributes) {
        auto& pass = *static_cast<XmlPass*>(self);
        pass.guarded([&] {
            if (pass.path_.size() == kMostDepth)
                throw InputError(pass.name_ + ": line " + std::to_string(pass.line()) +
                                 ": elements are nested more than " + std::to_string(kMostDepth) + " deep");
            pass.attributes_.clear();
            for (; *attributes; attributes += 2) pass.attributes_.emplace_back(attributes[0], attributes[1]);
            pass.handler_.begin({name, pass.attributes_, pass.path_}, pass.line());
            pass.path_.emplace_back(name);
            pass.texts_.emplace_back();
        });
    }
    static void on_end(void* self, const XML_Char* name) {
        auto& pass = *static_cast<XmlPass*>(self);
        pass.guarded([&] {
            const std::string text = std::move(pass.texts_.back());
            pass.texts_.pop_back();
            pass.path_.pop_back();
            const std::size_t first = text.find_first_not_of(" \t\r\n");
            const std::string_view inner =
                first == std::string::npos
                    ? std::string_view()
                    : std::string_view(text).substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
            pass.handler_.end(name, inner, pass.path_, pass.line());
        });
    }
    static void on_text(void* self, const XML_Char* text, int length) {
        auto& pass = *static_cast<XmlPass*>(self);
        pass.guarded([&] {
            if (pass.texts_.empty()) return;
            std::string& all = pass.texts_.back();
            if (all.size() + static_cast<std::size_t>(length) > kMostTextBytes)
                throw InputError(pass.name_ + ": line " + std::to_string(pass.line()) + ": too much text");
            all.append(text, static_cast<std::size_t>(length));
        });
    }

    const std::string& name_;
    XmlHandler& handler_;
    std::unique_ptr<XML_ParserStruct, Free> parser_;
    std::vector<std::pair<std::string_view, std::string_view>> attributes_;
    std::vector<std::string> path_, texts_;
    std::exception_ptr failure_;
    bool done_ = false;
};

}  // namespace

void read_xml(const std::filesystem::path& path, XmlHandler& handler, const CancelToken& cancel) {
    const std::string name = path.string();
    const File file(path, File::Mode::read);
    XmlPass pass(name, handler);
    std::string piece(kPieceBytes, '\0');
    for (std::uint64_t at = 0;;) {
        cancel.check();
        const std::size_t got =
            file.read_some_at(at, std::as_writable_bytes(std::span(piece.data(), piece.size())));
        at += got;
        pass.feed(std::string_view(piece).substr(0, got), got < piece.size());
        if (got < piece.size() || pass.is_done()) return;
    }
}

}  // namespace citysplat::io
