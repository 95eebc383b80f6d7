#include "io/crs/map_projection.hpp"

#include "core/error.hpp"
#include "core/math/math_hd.hpp"

#include <cmath>
#include <string>

namespace citysplat::io {

namespace {

double exp(double x) {
    constexpr double kLn2 = 0.69314718055994530942;
    const double k = std::floor(x / kLn2 + 0.5), r = x - k * kLn2;
    double term = 1, sum = 1;
    for (int i = 1; i < 20; ++i) sum += term *= r / i;
    return std::ldexp(sum, static_cast<int>(k));
}

/// ((1 − e·s) / (1 + e·s))^(e/2), s = sin(latitude): what the ellipsoid adds to the sphere.
double ellipsoid_factor(double e, double s) { return exp(e / 2 * exact::log((1 - e * s) / (1 + e * s))); }

}  // namespace

MapProjection::MapProjection(int epsg) {
    constexpr double kWgs84 = 1 / 298.257223563, kGrs80 = 1 / 298.257222101;
    const bool north = epsg > 32600 && epsg <= 32660, south = epsg > 32700 && epsg <= 32760,
               europe = epsg >= 25828 && epsg <= 25838;
    conic_ = epsg == 2154;
    if (!north && !south && !europe && !conic_)
        throw UsageError("EPSG:" + std::to_string(epsg) +
                         ": latitudes can be turned into UTM (EPSG:326xx, 327xx, 258xx) and Lambert-93 "
                         "(EPSG:2154) only; convert the trajectory first");
    flattening_ = north || south ? kWgs84 : kGrs80;
    central_rad_ = (conic_ ? 3 : (epsg % 100) * 6 - 183) * exact::kRadPerDegree;
    false_north_m_ = south ? 1e7 : 0;
}

MapProjection::Plane MapProjection::project(double latitude_rad, double longitude_rad) const {
    return conic_ ? lambert_conic(latitude_rad, longitude_rad)
                  : transverse_mercator(latitude_rad, longitude_rad);
}

double MapProjection::convergence_rad(double latitude_rad, double longitude_rad) const {
    constexpr double kStep = 1e-6;
    const Plane a = project(latitude_rad - kStep, longitude_rad),
                b = project(latitude_rad + kStep, longitude_rad);
    return exact::atan2(b.east_m - a.east_m, b.north_m - a.north_m);
}

/// Krüger's series in n to the fourth order (Karney 2011, eq. 35): errors below a micrometre within a zone.
MapProjection::Plane MapProjection::transverse_mercator(double latitude_rad, double longitude_rad) const {
    const double f = flattening_, n = f / (2 - f), n2 = n * n, n3 = n2 * n, n4 = n2 * n2;
    const double alpha[4]{n / 2 - 2 * n2 / 3 + 5 * n3 / 16 + 41 * n4 / 180,
                          13 * n2 / 48 - 3 * n3 / 5 + 557 * n4 / 1440, 61 * n3 / 240 - 103 * n4 / 140,
                          49561 * n4 / 161280};
    const double radius = axis_m_ / (1 + n) * (1 + n2 / 4 + n4 / 64);
    const double e = std::sqrt(f * (2 - f));
    const double s = exact::sin(latitude_rad);
    const auto lambda = exact::sin_cos(longitude_rad - central_rad_);
    const double grown = std::sqrt((1 + s) / (1 - s)) * ellipsoid_factor(e, s);
    const double t = (grown - 1 / grown) / 2;  // tangent of the conformal latitude
    const double xi = exact::atan2(t, lambda.cos);
    const double v = lambda.sin / std::sqrt(1 + t * t);
    const double double_eta = exact::log((1 + v) / (1 - v));  // 2 η' = 2 atanh(v)
    double north = xi, east = double_eta / 2;
    for (int j = 1; j <= 4; ++j) {
        const auto angle = exact::sin_cos(2 * j * xi);
        const double up = exp(j * double_eta);
        north += alpha[j - 1] * angle.sin * (up + 1 / up) / 2;
        east += alpha[j - 1] * angle.cos * (up - 1 / up) / 2;
    }
    constexpr double kScale = 0.9996;
    return {500000 + kScale * radius * east, false_north_m_ + kScale * radius * north};
}

/// Lambert conformal conic with two standard parallels (Snyder 1987, eq. 15-1 to 15-10).
MapProjection::Plane MapProjection::lambert_conic(double latitude_rad, double longitude_rad) const {
    const double e = std::sqrt(flattening_ * (2 - flattening_));
    const auto m = [e](double phi) {
        const auto a = exact::sin_cos(phi);
        return a.cos / std::sqrt(1 - e * e * a.sin * a.sin);
    };
    const auto t = [e](double phi) {
        const double s = exact::sin(phi);
        return std::sqrt((1 - s) / (1 + s)) / ellipsoid_factor(e, s);
    };
    const double phi0 = 46.5 * exact::kRadPerDegree, phi1 = 44 * exact::kRadPerDegree,
                 phi2 = 49 * exact::kRadPerDegree;
    const double n =
        (exact::log(m(phi1)) - exact::log(m(phi2))) / (exact::log(t(phi1)) - exact::log(t(phi2)));
    const double f = m(phi1) / (n * exp(n * exact::log(t(phi1))));
    const auto rho = [&](double phi) { return axis_m_ * f * exp(n * exact::log(t(phi))); };
    const auto theta = exact::sin_cos(n * (longitude_rad - central_rad_));
    const double r = rho(latitude_rad);
    return {700000 + r * theta.sin, 6600000 + rho(phi0) - r * theta.cos};
}

}  // namespace citysplat::io
