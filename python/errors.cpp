#include "errors.hpp"

#include "citysplat/types.hpp"
#include "core/error.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace py = pybind11;

namespace citysplat::python {

namespace {

struct Kind {
    ErrorKind kind;
    const char* name;
};
constexpr Kind kKinds[]{{ErrorKind::usage, "UsageError"},
                        {ErrorKind::bad_data, "BadData"},
                        {ErrorKind::unavailable, "Unavailable"},
                        {ErrorKind::io, "InputOutputError"},
                        {ErrorKind::busy, "Busy"},
                        {ErrorKind::held_back, "HeldBack"},
                        {ErrorKind::configuration, "ConfigError"},
                        {ErrorKind::interrupted, "Interrupted"}};

/// Of a module that is never unloaded: they live as long as the interpreter.
std::map<int, PyObject*>& classes() {
    static std::map<int, PyObject*> all;
    return all;
}

void raise(int code, const std::string& message) {
    const auto found = classes().find(code);
    // What is not UTF-8, such as names of files, is shown by question marks.
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
    PyErr_SetObject(found != classes().end() ? found->second : classes().at(0), text.ptr());
}

}  // namespace

void add_errors(py::module_& module) {
    const auto add = [&](const char* name, PyObject* base, int code, std::string_view kind) {
        const std::string full = std::string("citysplat.") + name;
        PyObject* made = PyErr_NewException(full.c_str(), base, nullptr);
        if (!made) throw py::error_already_set();
        module.add_object(name, made);
        py::handle(made).attr("code") = code;
        py::handle(made).attr("kind") = std::string(kind);
        classes()[code] = made;
        return made;
    };
    PyObject* base = add("Error", PyExc_RuntimeError, 0, "unknown");
    for (const Kind& kind : kKinds) add(kind.name, base, static_cast<int>(kind.kind), name_of(kind.kind));
    py::register_exception_translator([](std::exception_ptr failure) {
        try {
            if (failure) std::rethrow_exception(failure);
        } catch (const Error& e) {
            raise(static_cast<int>(e.kind()), e.what());
        } catch (const api::Error& e) {
            raise(e.code(), e.what());
        } catch (const std::filesystem::filesystem_error& e) {
            raise(static_cast<int>(ErrorKind::io), e.what());
        }
    });
}

}  // namespace citysplat::python
