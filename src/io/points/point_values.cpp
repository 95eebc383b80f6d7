#include "io/points/point_values.hpp"

#include "core/bytes.hpp"

namespace citysplat::io {

std::string bad_label(const PointBatch& out, std::size_t i) {
    const bool known = out.first_bad_label && out.first_bad_label->at == i;
    return (known ? " is " + format_number(out.first_bad_label->value) : std::string(" is no label")) +
           "; expected a whole number from 0 to 65534";
}

std::string far_sensor(Vec3d s) {
    return "the sensor position " + format_number(s.x) + ", " + format_number(s.y) + ", " +
           format_number(s.z) + " is not on Earth";
}

}  // namespace citysplat::io
