#include "io/crs/known_crs.hpp"

#include "core/bytes.hpp"
#include "core/error.hpp"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <proj.h>
#include <string_view>
#include <vector>

namespace citysplat::io {

namespace {

/// No system is described in more; a damaged file must not keep a parser busy.
constexpr std::size_t kLongestText = std::size_t{1} << 18;

struct DestroyCrs {
    void operator()(PJ* crs) const { ::proj_destroy(crs); }
};
using CrsPtr = std::unique_ptr<PJ, DestroyCrs>;

/// PROJ's state belongs to one thread at a time. Silent and without network.
class Proj {
  public:
    Proj() : lock_(mutex()), context_(shared()) {}

    CrsPtr create(const std::string& text) const {
        if (text.empty() || text.size() > kLongestText || text.find('\0') != std::string::npos) return {};
        CrsPtr crs;
        if (text.starts_with("EPSG:") || text.starts_with("epsg:")) {
            crs.reset(
                ::proj_create_from_database(context_, "EPSG", text.c_str() + 5, PJ_CATEGORY_CRS, 0, nullptr));
        } else {
            PROJ_STRING_LIST warnings = nullptr, errors = nullptr;
            static const char* const options[] = {"STRICT=NO", nullptr};
            crs.reset(::proj_create_from_wkt(context_, text.c_str(), options, &warnings, &errors));
            ::proj_string_list_destroy(warnings);
            ::proj_string_list_destroy(errors);
        }
        if (crs && !::proj_is_crs(crs.get())) crs.reset();
        return without_transformation(std::move(crs));
    }

    /// The horizontal part of a compound system, or the system itself.
    CrsPtr horizontal(const PJ* crs) const {
        if (::proj_get_type(crs) == PJ_TYPE_COMPOUND_CRS)
            return without_transformation(CrsPtr(::proj_crs_get_sub_crs(context_, crs, 0)));
        return CrsPtr(::proj_clone(context_, crs));
    }
    /// Nothing when the system has no heights of its own.
    CrsPtr vertical(const PJ* crs) const {
        if (::proj_get_type(crs) != PJ_TYPE_COMPOUND_CRS) return {};
        return without_transformation(CrsPtr(::proj_crs_get_sub_crs(context_, crs, 1)));
    }

    struct Axis {
        std::string unit;
        double factor = 0;  ///< to the unit of the kind: metres or radians
        bool angular = false;
    };
    std::optional<Axis> axis(const PJ* crs, int index) const {
        const CrsPtr system(::proj_crs_get_coordinate_system(context_, crs));
        const char *unit = nullptr, *authority = nullptr, *code = nullptr;
        double factor = 0;
        if (!system || !::proj_cs_get_axis_info(context_, system.get(), index, nullptr, nullptr, nullptr,
                                                &factor, &unit, &authority, &code))
            return std::nullopt;
        const PJ_COORDINATE_SYSTEM_TYPE type = ::proj_cs_get_type(context_, system.get());
        const bool angular = type == PJ_CS_TYPE_ELLIPSOIDAL && index < 2;
        return Axis{unit ? unit : "", factor, angular};
    }

    PJ_CONTEXT* context() const { return context_; }

  private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static PJ_CONTEXT* shared() {
        struct Context {
            PJ_CONTEXT* handle = ::proj_context_create();
            Context() {
                ::proj_log_level(handle, PJ_LOG_NONE);
                ::proj_context_set_enable_network(handle, 0);
            }
            ~Context() { ::proj_context_destroy(handle); }
        };
        static const Context context;
        return context.handle;
    }
    /// Files add how to get to WGS 84; that is not part of what the coordinates are.
    CrsPtr without_transformation(CrsPtr crs) const {
        while (crs && ::proj_get_type(crs.get()) == PJ_TYPE_BOUND_CRS)
            crs.reset(::proj_get_source_crs(context_, crs.get()));
        return crs;
    }

    std::lock_guard<std::mutex> lock_;
    PJ_CONTEXT* context_;
};

int epsg_of(const PJ* crs) {
    const char *authority = ::proj_get_id_auth_name(crs, 0), *code = ::proj_get_id_code(crs, 0);
    if (!authority || !code || std::string_view(authority) != "EPSG") return 0;
    return std::atoi(code);
}

/// Writers round the size of a unit; metres are exactly 1.
double rounded(double metres) { return std::fabs(metres - 1) < 1e-9 ? 1.0 : metres; }

bool equivalent(const Proj& proj, const PJ* a, const PJ* b) {
    return ::proj_is_equivalent_to_with_ctx(proj.context(), a, b,
                                            PJ_COMP_EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS) != 0;
}

}  // namespace

std::optional<KnownCrs> known_crs(const std::string& text) {
    const Proj proj;
    const CrsPtr crs = proj.create(text);
    if (!crs) return std::nullopt;
    const CrsPtr horizontal = proj.horizontal(crs.get()), vertical = proj.vertical(crs.get());
    const auto axis = horizontal ? proj.axis(horizontal.get(), 0) : std::nullopt;
    if (!axis) return std::nullopt;
    KnownCrs known;
    if (const char* name = ::proj_get_name(crs.get())) known.name = name;
    known.epsg = epsg_of(crs.get());
    if (known.epsg == 0) known.epsg = epsg_of(horizontal.get());
    known.geographic = axis->angular;
    known.heights_only = ::proj_get_type(crs.get()) == PJ_TYPE_VERTICAL_CRS;
    known.unit = axis->angular ? "degree" : axis->unit;
    known.metres_per_unit = axis->angular ? 0 : rounded(axis->factor);
    if (vertical) {
        if (const auto height = proj.axis(vertical.get(), 0))
            known.vertical_metres_per_unit = rounded(height->factor);
    } else if (const auto height = proj.axis(horizontal.get(), 2)) {
        known.vertical_metres_per_unit = rounded(height->factor);
    }
    return known;
}

std::optional<bool> same_known_crs(const std::string& a, const std::string& b) {
    const Proj proj;
    const CrsPtr first = proj.create(a), second = proj.create(b);
    if (!first || !second) return std::nullopt;
    const CrsPtr first_plane = proj.horizontal(first.get()), second_plane = proj.horizontal(second.get());
    if (!first_plane || !second_plane) return std::nullopt;
    if (!equivalent(proj, first_plane.get(), second_plane.get())) return false;
    const CrsPtr first_height = proj.vertical(first.get()), second_height = proj.vertical(second.get());
    return !first_height || !second_height || equivalent(proj, first_height.get(), second_height.get());
}

std::optional<std::string> wkt_of_known_crs(const std::string& text) {
    const Proj proj;
    const CrsPtr crs = proj.create(text);
    if (!crs) return std::nullopt;
    static const char* const options[] = {"MULTILINE=NO", nullptr};
    const char* wkt = ::proj_as_wkt(proj.context(), crs.get(), PJ_WKT1_GDAL, options);
    if (!wkt) return std::nullopt;
    return std::string(wkt);
}

std::optional<std::pair<std::string, double>> known_length_unit(unsigned epsg) {
    const Proj proj;
    const char *name = nullptr, *category = nullptr;
    double factor = 0;
    if (!::proj_uom_get_info_from_database(proj.context(), "EPSG", std::to_string(epsg).c_str(), &name,
                                           &factor, &category) ||
        !category || std::string_view(category) != "linear" || !(factor > 0))
        return std::nullopt;
    return std::pair(std::string(name ? name : ""), rounded(factor));
}

/// PROJ's state for one thread at a time.
class CrsConversion::Worker {
  public:
    Worker(const std::string& from, const std::string& to) : context_(::proj_context_create()) {
        ::proj_log_level(context_.get(), PJ_LOG_NONE);
        ::proj_context_set_enable_network(context_.get(), 0);
        CrsPtr a, b;
        {
            const Proj proj;
            a = plane(proj, from);
            b = plane(proj, to);
        }
        if (!a || !b) return;
        const CrsPtr raw(
            ::proj_create_crs_to_crs_from_pj(context_.get(), a.get(), b.get(), nullptr, nullptr));
        if (raw) conversion_.reset(::proj_normalize_for_visualization(context_.get(), raw.get()));
    }

    explicit operator bool() const { return conversion_ != nullptr; }

    void convert(std::span<double> x, std::span<double> y) const {
        ::proj_trans_generic(conversion_.get(), PJ_FWD, x.data(), sizeof(double), x.size(), y.data(),
                             sizeof(double), y.size(), nullptr, 0, 0, nullptr, 0, 0);
        ::proj_errno_reset(conversion_.get());
    }

    std::string way() const {
        const PJ_PROJ_INFO info = ::proj_pj_info(conversion_.get());
        std::string text = info.description ? info.description : "";
        if (info.accuracy >= 0) text += ", accurate to " + format_number(info.accuracy) + " m";
        return text.empty() ? "by PROJ" : text;
    }

  private:
    struct DestroyContext {
        void operator()(PJ_CONTEXT* context) const { ::proj_context_destroy(context); }
    };

    CrsPtr plane(const Proj& proj, const std::string& text) const {
        const CrsPtr crs = proj.create(text);
        const CrsPtr horizontal = crs ? proj.horizontal(crs.get()) : CrsPtr();
        return horizontal ? CrsPtr(::proj_clone(context_.get(), horizontal.get())) : CrsPtr();
    }

    std::unique_ptr<PJ_CONTEXT, DestroyContext> context_;
    CrsPtr conversion_;
};

struct CrsConversion::Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<Worker>> idle;
};

CrsConversion::CrsConversion(const std::string& from, const std::string& to)
    : from_(from), to_(to), pool_(std::make_unique<Pool>()) {
    auto worker = std::make_unique<Worker>(from, to);
    if (!*worker)
        throw InputError("PROJ knows no way from \"" + from.substr(0, 60) + "\" to \"" + to.substr(0, 60) +
                         "\"");
    way_ = worker->way();
    pool_->idle.push_back(std::move(worker));
}

CrsConversion::~CrsConversion() = default;

std::unique_ptr<CrsConversion::Worker> CrsConversion::take() const {
    {
        const std::lock_guard guard(pool_->mutex);
        if (!pool_->idle.empty()) {
            auto worker = std::move(pool_->idle.back());
            pool_->idle.pop_back();
            return worker;
        }
    }
    return std::make_unique<Worker>(from_, to_);
}

void CrsConversion::convert(std::span<double> x, std::span<double> y) const {
    auto worker = take();
    worker->convert(x, y);
    const std::lock_guard guard(pool_->mutex);
    pool_->idle.push_back(std::move(worker));
}

}  // namespace citysplat::io
