#include "bindings.hpp"
#include "citysplat/context.hpp"
#include "citysplat/run_command.hpp"
#include "core/error.hpp"
#include "interruptible.hpp"

#include <nlohmann/json.hpp>

#include <pybind11/stl.h>

namespace py = pybind11;

namespace citysplat::python {

namespace {

/// Runs a verb of the program and returns what it prints with --json.
std::string run(const std::vector<std::string>& words, const py::object& progress) {
    Mailbox mailbox;
    cli::Context context;
    context.embed({[&](const std::string& line) { mailbox.warn(line); },
                   [&](const ProgressNote& note) { mailbox.put(note); }});
    run_interruptibly([&] { cli::run_command(words, context); }, context.cancel(), mailbox, progress);
    return context.take_result().dump();
}

}  // namespace

void add_verbs(py::module_& module) { module.def("run", &run); }

}  // namespace citysplat::python
