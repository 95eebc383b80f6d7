#pragma once

#include <mutex>
#include <pybind11/pybind11.h>

namespace citysplat::python {

/// While it lives, this thread alone uses an object that is made for one thread at a time, and other threads
/// may run Python. The interpreter's lock is given up before the object's is taken, and taken again after
/// that was given back: no thread waits for one of them while it holds the other. No Python object may be
/// touched meanwhile.
class Held {
  public:
    explicit Held(std::mutex& object) : object_(object) {}

  private:
    pybind11::gil_scoped_release interpreter_;
    std::lock_guard<std::mutex> object_;
};

}  // namespace citysplat::python
