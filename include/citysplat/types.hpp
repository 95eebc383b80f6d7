#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

/// The library as other programs see it. Headers in include/citysplat need nothing but the standard library;
/// what they say stays within a major version. Everything throws Error. Lengths are metres, times seconds,
/// coordinates those of the city.
#define CITYSPLAT_API_VERSION 1

namespace citysplat::api {
inline namespace v1 {

struct Vec3 {
    double x = 0, y = 0, z = 0;
};
struct Vec3f {
    float x = 0, y = 0, z = 0;
};

/// A rigid transform: rotation by a unit quaternion, then translation.
struct Pose {
    Vec3 position;
    double qx = 0, qy = 0, qz = 0, qw = 1;
};

/// The message says what, where and the way out; the code is the exit code of the program (docs/cli.md).
class Error : public std::runtime_error {
  public:
    Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    int code() const noexcept { return code_; }

  private:
    int code_;
};

/// "0.1.0"
const char* version();

}  // namespace v1
}  // namespace citysplat::api
