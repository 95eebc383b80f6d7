#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace citysplat {

class Progress;

/// How far a stage is.
struct ProgressNote {
    std::string stage, unit;
    std::uint64_t done, total;  ///< total 0: not known
    double seconds;
    bool finished;
};

/// While this lives, what a Progress of the style json would print is handed to `hear` instead, for programs
/// that embed a command. Called from any thread, one note of a stage at a time; may not throw.
class ProgressListener {
  public:
    /// The Progress must outlive it, and have no other listener.
    ProgressListener(const Progress& progress, std::function<void(const ProgressNote&)> hear);
    ~ProgressListener();
    ProgressListener(const ProgressListener&) = delete;
    ProgressListener& operator=(const ProgressListener&) = delete;

  private:
    const Progress* progress_;
};

}  // namespace citysplat
