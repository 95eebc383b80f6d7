#pragma once

#include <pybind11/pybind11.h>

namespace citysplat::python {

/// Makes citysplat.Error and one class below it for each kind of error, with the exit code of the program as
/// `code`, and turns what the library throws into them.
void add_errors(pybind11::module_& module);

}  // namespace citysplat::python
