#include "core/formats/point_values.hpp"

#include <cstdio>

namespace citysplat::formats {

std::string number(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.12g", v);
    return text;
}

std::string bad_label(const PointBatch& out, std::size_t i) {
    const bool known = out.first_bad_label && out.first_bad_label->at == i;
    return (known ? " is " + number(out.first_bad_label->value) : std::string(" is no label")) +
           "; expected a whole number from 0 to 65534";
}

std::string far_sensor(Vec3d s) {
    return "the sensor position " + number(s.x) + ", " + number(s.y) + ", " + number(s.z) +
           " is not on Earth";
}

}  // namespace citysplat::formats
