#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

/// What PROJ knows about coordinate systems: names, units, identity, and the way from one to another. No
/// coordinate is changed unless a CrsConversion is asked to. The one place that uses PROJ; safe to call from
/// several threads.
namespace citysplat::io {

struct KnownCrs {
    std::string name;
    int epsg = 0;  ///< 0: the system has no code of its own
    bool geographic = false;
    bool heights_only = false;                       ///< a vertical system: the unit is that of heights
    std::string unit;                                ///< of the horizontal axes
    double metres_per_unit = 1;                      ///< 0 for degrees
    std::optional<double> vertical_metres_per_unit;  ///< nothing when the system does not speak of heights
};

/// Nothing when the text, "EPSG:n" or WKT 1 or 2, is not a complete coordinate system to PROJ.
std::optional<KnownCrs> known_crs(const std::string& text);

/// Whether two texts mean the same system; heights count when both speak of them. Nothing when PROJ does not
/// know one of them.
std::optional<bool> same_known_crs(const std::string& a, const std::string& b);

/// WKT 1 as LAS files have it. Nothing when PROJ does not know the system.
std::optional<std::string> wkt_of_known_crs(const std::string& text);

/// Metres of an EPSG unit of length (9001, 9003, …) and its name. Nothing when there is no such unit.
std::optional<std::pair<std::string, double>> known_length_unit(unsigned epsg);

/// Makes positions of one system those of another: x and y, or longitude and latitude in degrees; heights are
/// left alone.
class CrsConversion {
  public:
    /// Throws InputError when PROJ does not know one of the systems, or no way between them.
    CrsConversion(const std::string& from, const std::string& to);
    ~CrsConversion();
    CrsConversion(const CrsConversion&) = delete;
    CrsConversion& operator=(const CrsConversion&) = delete;

    /// A place where the conversion is not defined becomes infinite. Requires as many y as x.
    void convert(std::span<double> x, std::span<double> y) const;
    /// What PROJ does, and how accurate it says that is.
    const std::string& way() const { return way_; }

  private:
    class Worker;
    std::unique_ptr<Worker> take() const;

    std::string from_, to_, way_;
    struct Pool;
    std::unique_ptr<Pool> pool_;
};

}  // namespace citysplat::io
