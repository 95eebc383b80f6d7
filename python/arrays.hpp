#pragma once

#include <cstddef>
#include <pybind11/numpy.h>
#include <span>
#include <vector>

namespace citysplat::python {

/// An array over memory that `owner` keeps, which cannot be written.
template <class T>
pybind11::array view_of(std::span<const T> values, pybind11::handle owner) {
    pybind11::array_t<T> array(static_cast<pybind11::ssize_t>(values.size()), values.data(), owner);
    array.attr("setflags")(pybind11::arg("write") = false);
    return array;
}

/// The memory that becomes the array's, with its owner.
template <class T>
std::span<T> kept(std::vector<T>&& values, pybind11::capsule& owner) {
    auto* own = new std::vector<T>(std::move(values));
    owner = pybind11::capsule(own, [](void* p) { delete static_cast<std::vector<T>*>(p); });
    return *own;
}

/// N × 3 numbers.
template <class T>
using Rows = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;

}  // namespace citysplat::python
