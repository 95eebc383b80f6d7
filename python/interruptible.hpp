#pragma once

#include "core/cancel.hpp"
#include "core/listening/progress_listener.hpp"

#include <deque>
#include <functional>
#include <mutex>
#include <pybind11/pybind11.h>
#include <string>
#include <vector>

namespace citysplat::python {

/// What a long call has to say before it ends. Filled by any thread, emptied by the one that waits.
class Mailbox {
  public:
    void put(const ProgressNote& note);
    void warn(const std::string& line);

    std::deque<ProgressNote> take_notes();
    std::vector<std::string> take_warnings();

  private:
    std::mutex mutex_;
    std::deque<ProgressNote> notes_;
    std::vector<std::string> warnings_;
};

/// Does the work on a thread of its own, without the interpreter's lock. Meanwhile the calling thread calls
/// `progress` (None: nothing) with a dict for each note, and looks for Ctrl-C: that, or an exception of
/// `progress`, requests `cancel`, and is raised when the work has ended. Warnings become RuntimeWarnings.
void run_interruptibly(const std::function<void()>& work, CancelToken& cancel, Mailbox& mailbox,
                       const pybind11::object& progress);

}  // namespace citysplat::python
