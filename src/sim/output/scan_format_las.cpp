#include "sim/output/las_header.hpp"
#include "sim/output/scan_format.hpp"
#include "sim/output/scan_record.hpp"

namespace citysplat::sim {

namespace {

class LasFormat final : public ScanFormat {
  public:
    std::string_view extension() const override { return ".las"; }

    std::string header(const CloudLayout& layout, const CloudSummary& summary) const override {
        return las_header({kReturnFields, layout.offset_m, layout.crs, "simulation"}, summary);
    }

    void append(const Scan& scan, const CloudLayout& layout, std::vector<std::byte>& out,
                CloudSummary& summary) const override {
        const std::size_t before = out.size();
        out.resize(before + scan.returns.size() * (kLasPointBytes + kReturnBytes));
        std::byte* at = out.data() + before;
        for_each_point(scan, layout, [&](std::uint32_t ray, const Return& r, Vec3d p) {
            summary.add(put_las_point(at, {p, layout.offset_m, r.intensity, r.label, r.beam,
                                           scan.time_s + static_cast<double>(r.time_s)}));
            put_return(at, ray, r);
        });
        out.resize(static_cast<std::size_t>(at - out.data()));
    }
};

}  // namespace

std::unique_ptr<ScanFormat> make_las_format() { return std::make_unique<LasFormat>(); }

}  // namespace citysplat::sim
