#pragma once

#include "core/cancel.hpp"
#include "splat/levels/level_pyramid.hpp"
#include "view/scans/distance_cloud.hpp"
#include "view/scans/scan_folder.hpp"
#include "view/server/city_facts.hpp"
#include "view/server/exchange.hpp"
#include "view/server/gate.hpp"
#include "view/server/shown_set.hpp"
#include "view/server/tile_check.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace citysplat::view {

struct ApiOptions {
    std::uint16_t port = 0;
    std::string token;
    splat::PyramidOptions levels;
    std::uint64_t pick_bytes = std::uint64_t{256} << 20;  ///< tiles ready for rays
    const ScanFolder* scans = nullptr;                    ///< to play; outlives the server
    const GenerationSource* generations = nullptr;        ///< others to show; outlives the server
    const DistanceCloud* distances = nullptr;             ///< to colour by; outlives the server
    bool check_tiles = false;                             ///< read every tile once, beside the rest
};

/// Answers requests about a city, without sockets. Routes are a fixed table; no part of a request is ever a
/// path. Safe to call from several threads.
///
///   /                                the page
///   /app/HASH/NAME                   its parts; HASH is of all of them
///   /api/city, /api/city/N           the tiles and classes of a generation: the first one, or number N
///   /api/ground/N                    which input and which generation are on the ground there
///   /api/beside                      path, scans and distances in one answer, for the first picture
///   /api/distances                   points that were compared with a reference, which have cubes as well
///   /api/generations                 those that are retained now
///   /api/diff/A/B                    what differs between two of them
///   /api/cube/KEY/LEVEL/X/Y/Z        a cube of the levels of detail; KEY is of the splats
///   /api/pick?o=X,Y,Z&d=X,Y,Z        what a ray meets first; &g=N: in generation N
///   /api/path                        the trajectory
///   /api/scans                       sensors, times and poses of the scans to play
///   /api/scan/SENSOR/NUMBER          the points of one, as columns
///   /api/boxes/SENSOR/NUMBER         what moved in it
///   /api/progress, /api/progress/N   how far the levels are, and tiles that could not be read
class ViewApi {
  public:
    ViewApi(const ShownCity& city, const ApiOptions& options);

    /// Whether an answer may have to read or to make much. What a page asks for before it shows anything is
    /// quick.
    static bool is_slow(std::string_view target);

    /// Never throws: what goes wrong is an answer, too. Ends early when cancelled.
    Response answer(const Request& request, const CancelToken& cancel);

  private:
    Response route(const Request& request, const CancelToken& cancel);
    Response page() const;
    Response asset(std::string_view rest, const Request& request) const;
    enum class About { city, progress, ground };
    Response of_generation(std::string_view number, About what);
    Response diff(std::string_view rest, const CancelToken& cancel);
    Response cube(std::string_view rest, const CancelToken& cancel);
    Response pick(std::string_view query, const CancelToken& cancel);
    Response scan(std::string_view rest, bool boxes) const;
    std::string distances() const;
    Response progress(const ShownGeneration& of) const;

    Gate gate_;
    ShownSets sets_;
    const ScanFolder* scans_;
    const DistanceCloud* distances_;
    std::optional<splat::LevelPyramid> distance_levels_;
    std::string distance_key_;
    std::optional<TileCheck> check_;  ///< of the first generation
    std::string assets_hash_;
};

}  // namespace citysplat::view
