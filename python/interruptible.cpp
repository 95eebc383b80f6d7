#include "interruptible.hpp"

#include "core/printable.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <optional>
#include <thread>

namespace py = pybind11;

namespace citysplat::python {

namespace {

/// How long Ctrl-C may go unnoticed here.
constexpr auto kLook = std::chrono::milliseconds(50);

}  // namespace

void Mailbox::put(const ProgressNote& note) {
    const std::lock_guard lock(mutex_);
    // Only the last note of a stage counts until somebody looks.
    if (!notes_.empty() && notes_.back().stage == note.stage)
        notes_.back() = note;
    else
        notes_.push_back(note);
}
void Mailbox::warn(const std::string& line) {
    const std::lock_guard lock(mutex_);
    warnings_.push_back(line);
}
std::deque<ProgressNote> Mailbox::take_notes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
}
std::vector<std::string> Mailbox::take_warnings() {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
}

void run_interruptibly(const std::function<void()>& work, CancelToken& cancel, Mailbox& mailbox,
                       const py::object& progress) {
    std::exception_ptr failure;
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    std::thread worker([&] {
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        done = true;
        ended.notify_one();
    });

    std::optional<py::error_already_set> raised;
    const auto deliver = [&] {
        for (const ProgressNote& note : mailbox.take_notes()) {
            if (raised || progress.is_none()) continue;
            try {
                progress(py::dict(py::arg("stage") = as_utf8(note.stage), py::arg("done") = note.done,
                                  py::arg("total") = note.total, py::arg("unit") = note.unit,
                                  py::arg("seconds") = note.seconds, py::arg("finished") = note.finished));
            } catch (py::error_already_set& e) {
                raised.emplace(std::move(e));
                cancel.request();
            }
        }
    };
    for (bool over = false; !over;) {
        {
            const py::gil_scoped_release release;
            std::unique_lock lock(mutex);
            over = ended.wait_for(lock, kLook, [&] { return done; });
        }
        if (!raised && PyErr_CheckSignals() != 0) {
            raised.emplace();
            cancel.request();
        }
        deliver();
    }
    worker.join();
    if (raised) throw std::move(*raised);
    for (const std::string& line : mailbox.take_warnings())
        if (PyErr_WarnEx(PyExc_RuntimeWarning, line.c_str(), 2) != 0) throw py::error_already_set();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace citysplat::python
