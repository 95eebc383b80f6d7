#include "bindings.hpp"
#include "citysplat/types.hpp"
#include "core/file.hpp"
#include "errors.hpp"

PYBIND11_MODULE(_citysplat, module) {
    module.doc() = "The engine of the package citysplat.";
    module.attr("version") = citysplat::api::version();
    citysplat::raise_descriptor_limit();
    citysplat::python::add_errors(module);
    citysplat::python::add_city(module);
    citysplat::python::add_session(module);
    citysplat::python::add_uav(module);
    citysplat::python::add_verbs(module);
}
