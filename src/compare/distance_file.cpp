#include "compare/distance_file.hpp"

#include "io/write/cloud_header.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace citysplat::compare {

namespace {

constexpr auto kFields = io::field_table<PointDistance>(
    io::FieldOf{"x", "m", "east", [](const PointDistance& p) { return p.at.x; }},
    io::FieldOf{"y", "m", "north", [](const PointDistance& p) { return p.at.y; }},
    io::FieldOf{"z", "m", "up", [](const PointDistance& p) { return p.at.z; }},
    io::FieldOf{"distance", "m", "to the nearest reference point",
                [](const PointDistance& p) { return static_cast<float>(p.distance_m); }},
    io::FieldOf{"intensity", "0.1 mm", "the distance, at most 6.5 m",
                [](const PointDistance& p) {
                    return static_cast<std::uint16_t>(std::min(p.distance_m * 1e4 + 0.5, 65535.0));
                }},
    io::FieldOf{"label", "", "class", [](const PointDistance& p) { return p.label; }});

std::string header(std::uint64_t points) {
    const std::array<std::string, 1> comments{"citysplat compare --distances"};
    const auto fields = kFields.fields();
    return io::ply_header(fields, points, comments);
}

}  // namespace

DistanceFile::DistanceFile(const std::filesystem::path& path) : file_(path) {
    file_.writer().text(std::string(header(0).size(), '\0'));
}

void DistanceFile::write(std::span<const PointDistance> points) {
    records_.resize(points.size() * kFields.kBytes);
    std::byte* at = records_.data();
    for (const PointDistance& point : points) kFields.put(at, point);
    file_.writer().write(records_);
    points_ += points.size();
}

void DistanceFile::commit() {
    const std::string head = header(points_);
    file_.writer().patch(0, std::as_bytes(std::span(head)));
    file_.commit();
}

}  // namespace citysplat::compare
