#pragma once

#include <pybind11/pybind11.h>

/// The parts of the module _citysplat, which python/citysplat/__init__.py gives its public face. Names and
/// arguments here are for that file alone.
namespace citysplat::python {

void add_city(pybind11::module_& module);
void add_session(pybind11::module_& module);
void add_uav(pybind11::module_& module);
void add_verbs(pybind11::module_& module);

}  // namespace citysplat::python
