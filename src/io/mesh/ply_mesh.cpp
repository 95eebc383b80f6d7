#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/printable.hpp"
#include "core/text.hpp"
#include "io/bytes_le.hpp"
#include "io/mesh/mesh_builder.hpp"
#include "io/mesh/mesh_formats.hpp"
#include "io/points/ply_header.hpp"

#include <algorithm>
#include <cmath>

/// PLY with faces: vertices with x, y, z, and faces whose corners are a list vertex_indices. Other properties
/// and other elements are read over.
namespace citysplat::io {

namespace {

constexpr std::uint64_t kMostCorners = 100'000;

/// The values of the elements, one after the other.
class PlyValues {
  public:
    virtual ~PlyValues() = default;
    virtual double next(Scalar type) = 0;
    virtual void end_record() = 0;
};

class TextValues final : public PlyValues {
  public:
    TextValues(std::string_view body, const MeshPlace& place) : body_(body), place_(place) {}

    double next(Scalar) override {
        const std::size_t begin = body_.find_first_not_of(kBlanks, at_);
        const std::size_t end = std::min(body_.find_first_of(" \t\r\n", begin), body_.size());
        if (begin == std::string_view::npos || begin == end)
            throw InputError(place_.text() + ": the line ends before its last number");
        const auto value = parse_number(body_.substr(begin, end - begin));
        if (!value)
            throw InputError(place_.text() + ": \"" +
                             printable(body_.substr(begin, std::min<std::size_t>(end - begin, 40))) +
                             "\" is not a number");
        at_ = end;
        return *value;
    }
    void end_record() override {
        const std::size_t end = std::min(body_.find('\n', at_), body_.size());
        if (!trimmed(body_.substr(at_, end - at_)).empty())
            throw InputError(place_.text() + ": more numbers than the header names");
        at_ = std::min(end + 1, body_.size());
    }

  private:
    std::string_view body_;
    const MeshPlace& place_;
    std::size_t at_ = 0;
};

class BinaryValues final : public PlyValues {
  public:
    BinaryValues(std::string_view body, bool big_endian, const MeshPlace& place)
        : body_(body), big_endian_(big_endian), place_(place) {}

    double next(Scalar type) override {
        if (!fits(at_, bytes_of(type), body_.size()))
            throw InputError(place_.text() + ": the file ends in the middle of it");
        const auto* bytes = reinterpret_cast<const std::byte*>(body_.data()) + at_;
        at_ += bytes_of(type);
        return value_at(bytes, type, big_endian_);
    }
    void end_record() override {}

  private:
    std::string_view body_;
    bool big_endian_;
    const MeshPlace& place_;
    std::size_t at_ = 0;
};

class PlyMeshReader {
  public:
    explicit PlyMeshReader(const std::filesystem::path& path)
        : name_(path.string()), file_(path, File::Mode::read), header_(read_ply_header(file_)), mesh_(name_) {
        if (file_.size() > kMostMeshBytes)
            throw InputError(name_ + ": " + format_bytes(file_.size()) + "; a mesh may have " +
                             format_bytes(kMostMeshBytes));
        body_.resize(static_cast<std::size_t>(file_.size() - header_.bytes));
        file_.read_at(header_.bytes, std::as_writable_bytes(std::span(body_.data(), body_.size())));
        if (header_.data == PlyData::ascii)
            values_ = std::make_unique<TextValues>(body_, place_);
        else
            values_ = std::make_unique<BinaryValues>(body_, header_.data == PlyData::big_endian, place_);
    }

    MeshFile read() {
        require_faces();
        for (const PlyElement& element : header_.elements) {
            if (element.count > body_.size())
                throw InputError(name_ + ": " + format_count(element.count) + " elements \"" + element.name +
                                 "\" in " + format_bytes(body_.size()));
            place_.kind = element.name;
            if (element.name == "vertex")
                read_vertices(element);
            else if (element.name == "face")
                read_faces(element);
            else
                skip(element);
        }
        return std::move(mesh_).finish();
    }

  private:
    static bool is_corners(const PlyProperty& p) {
        return p.count && (p.name == "vertex_indices" || p.name == "vertex_index");
    }

    void require_faces() const {
        bool vertices = false;
        for (const PlyElement& element : header_.elements) {
            if (element.name == "tristrips" && element.count)
                throw InputError(name_ + ": triangle strips are not supported; write faces");
            if (element.name == "vertex") vertices = true;
            if (element.name != "face") continue;
            if (!vertices) throw InputError(name_ + ": the faces come before the vertices");
            if (std::count_if(element.all.begin(), element.all.end(), is_corners) != 1)
                throw InputError(name_ + ": the faces have no list \"vertex_indices\", or two of them");
            return;
        }
        throw InputError(name_ + ": no element \"face\": these are points, not a mesh");
    }

    /// Reads one property over; a list as a whole.
    void pass(const PlyProperty& p) {
        const std::uint64_t n = p.count ? length_of(p) : 1;
        for (std::uint64_t i = 0; i < n; ++i) values_->next(p.type);
    }

    std::uint64_t length_of(const PlyProperty& p) {
        const double n = values_->next(*p.count);
        if (!(n >= 0 && n <= static_cast<double>(kMostCorners)) || n != std::floor(n))
            throw InputError(place_.text() + ": a list \"" + p.name + "\" of " + format_number(n) + " items");
        return static_cast<std::uint64_t>(n);
    }

    void skip(const PlyElement& element) {
        for (place_.number = 0; place_.number < element.count; ++place_.number) {
            for (const PlyProperty& p : element.all) pass(p);
            values_->end_record();
        }
    }

    void read_vertices(const PlyElement& element) {
        constexpr std::string_view kAxes[3]{"x", "y", "z"};
        std::vector<int> axis_of(element.all.size(), -1);
        for (int axis = 0; axis < 3; ++axis) {
            int found = 0;
            for (std::size_t i = 0; i < element.all.size(); ++i)
                if (element.all[i].name == kAxes[axis] && !element.all[i].count) axis_of[i] = axis, ++found;
            if (found != 1)
                throw InputError(name_ + ": the vertices have " + std::to_string(found) + " properties \"" +
                                 std::string(kAxes[axis]) + "\"; expected one");
        }
        for (place_.number = 0; place_.number < element.count; ++place_.number) {
            double v[3]{};
            for (std::size_t i = 0; i < element.all.size(); ++i)
                if (axis_of[i] >= 0)
                    v[axis_of[i]] = values_->next(element.all[i].type);
                else
                    pass(element.all[i]);
            values_->end_record();
            mesh_.vertex(Vec3d{v[0], v[1], v[2]} + header_.offset, place_);
        }
    }

    void read_faces(const PlyElement& element) {
        const std::uint16_t material = mesh_.material("", std::nullopt, place_);
        std::vector<std::uint32_t> corners;
        for (place_.number = 0; place_.number < element.count; ++place_.number) {
            for (const PlyProperty& p : element.all) {
                if (!is_corners(p)) {
                    pass(p);
                    continue;
                }
                corners.clear();
                for (std::uint64_t left = length_of(p); left > 0; --left) {
                    const double v = values_->next(p.type);
                    if (!(v >= 0 && v < static_cast<double>(mesh_.vertices())) || v != std::floor(v))
                        throw InputError(place_.text() + ": " + format_number(v) + " is not one of the " +
                                         std::to_string(mesh_.vertices()) + " vertices, counted from 0");
                    corners.push_back(static_cast<std::uint32_t>(v));
                }
            }
            values_->end_record();
            mesh_.polygon(corners, material, place_);
        }
    }

    std::string name_;
    File file_;
    PlyHeader header_;
    MeshBuilder mesh_;
    MeshPlace place_{name_, "vertex", 0};
    std::string body_;
    std::unique_ptr<PlyValues> values_;
};

}  // namespace

MeshFile read_ply_mesh(const std::filesystem::path& path) { return PlyMeshReader(path).read(); }

}  // namespace citysplat::io
