#pragma once

#include "core/math/host_device.hpp"

#include <cmath>

namespace citysplat {

template <class T>
struct Vec3 {
    T x, y, z;
};
using Vec3f = Vec3<float>;
using Vec3d = Vec3<double>;

template <class T>
CITYSPLAT_HD constexpr Vec3<T> operator+(Vec3<T> a, Vec3<T> b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T>
CITYSPLAT_HD constexpr Vec3<T> operator-(Vec3<T> a, Vec3<T> b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T>
CITYSPLAT_HD constexpr Vec3<T> operator-(Vec3<T> a) {
    return {-a.x, -a.y, -a.z};
}
template <class T>
CITYSPLAT_HD constexpr Vec3<T> operator*(Vec3<T> a, T s) {
    return {a.x * s, a.y * s, a.z * s};
}
template <class T>
CITYSPLAT_HD constexpr Vec3<T> operator*(T s, Vec3<T> a) {
    return a * s;
}
template <class T>
CITYSPLAT_HD constexpr T dot(Vec3<T> a, Vec3<T> b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
CITYSPLAT_HD constexpr Vec3<T> cross(Vec3<T> a, Vec3<T> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T>
CITYSPLAT_HD inline T length(Vec3<T> a) {
    return std::sqrt(dot(a, a));
}
/// Requires length(a) > 0.
template <class T>
CITYSPLAT_HD inline Vec3<T> normalized(Vec3<T> a) {
    return a * (T(1) / length(a));
}
template <class To, class From>
CITYSPLAT_HD constexpr Vec3<To> vec_cast(Vec3<From> a) {
    return {static_cast<To>(a.x), static_cast<To>(a.y), static_cast<To>(a.z)};
}

}  // namespace citysplat
