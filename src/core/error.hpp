#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace citysplat {

/// What went wrong, as the caller must react to it. The value is the exit code of the program (docs/cli.md),
/// which `main` alone turns into one.
enum class ErrorKind : int {
    usage = 2,           ///< the command line makes no sense
    bad_data = 65,       ///< an input or an object is damaged or impossible
    unavailable = 69,    ///< the requested backend is not there
    io = 74,             ///< the operating system failed us, or the disk is full
    busy = 75,           ///< somebody else holds the city; try again
    held_back = 76,      ///< a gate the user set kept a result from being published
    configuration = 78,  ///< a parameter file or an existing city contradicts the request
    interrupted = 130    ///< the user asked to stop
};

/// As scripts know it: "error.kind" of a failed command with --json (docs/cli.md). Never changes.
constexpr std::string_view name_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage:
            return "usage";
        case ErrorKind::bad_data:
            return "bad_data";
        case ErrorKind::unavailable:
            return "unavailable";
        case ErrorKind::io:
            return "io";
        case ErrorKind::busy:
            return "busy";
        case ErrorKind::held_back:
            return "held_back";
        case ErrorKind::configuration:
            return "configuration";
        case ErrorKind::interrupted:
            return "interrupted";
    }
    return "unknown";
}

/// Base of every exception of the project. The message is complete for a user: what, where (file and byte or
/// record, or tile), and the way out.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

template <ErrorKind Kind>
class ErrorOf : public Error {
  public:
    explicit ErrorOf(const std::string& message) : Error(Kind, message) {}
};

using UsageError = ErrorOf<ErrorKind::usage>;
using UnavailableError = ErrorOf<ErrorKind::unavailable>;
using BusyError = ErrorOf<ErrorKind::busy>;
using HeldBackError = ErrorOf<ErrorKind::held_back>;
using ConfigError = ErrorOf<ErrorKind::configuration>;

/// A file somebody gave us is damaged or not what it claims to be.
class InputError : public Error {
  public:
    explicit InputError(const std::string& message) : Error(ErrorKind::bad_data, message) {}
};

/// A file we wrote ourselves is damaged.
class CorruptionError : public Error {
  public:
    explicit CorruptionError(const std::string& message) : Error(ErrorKind::bad_data, message) {}
};

/// The operating system refused a file operation.
class IoError : public Error {
  public:
    explicit IoError(const std::string& message) : Error(ErrorKind::io, message) {}
};

/// Disk or memory budget would be exceeded.
class ResourceError : public Error {
  public:
    explicit ResourceError(const std::string& message) : Error(ErrorKind::io, message) {}
};

class Interrupted : public Error {
  public:
    Interrupted() : Error(ErrorKind::interrupted, "interrupted") {}
};

}  // namespace citysplat
