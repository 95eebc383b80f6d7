#pragma once

#include "core/file.hpp"
#include "io/write/gltf/glb_part.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace citysplat::io {

/// Writes glTF 2.0 as one binary file (GLB): a node and a mesh for each part, below a node that turns z up
/// into the y up of glTF. Metres. Positions are float32 from the origin of their part, which is told as a
/// translation from the origin of the file; that one is in `asset.extras`, for JSON numbers are double and
/// viewers are not.
///
///   column       attribute      type
///   positions    POSITION       float × 3
///   normals      NORMAL         float × 3
///   intensity    COLOR_0        u16 × 4, normalised: grey, opaque; linear as glTF has it
///   label        _LABEL         u16
///   radius_m     _RADIUS        float, metres
///
/// JSON comes first in a GLB and knows the extent of everything behind it: room for `most_parts` is left and
/// filled in at the end, the rest with spaces.
class GlbWriter {
  public:
    /// Writes at the current end of `out`, which must be its beginning, and patches it in finish().
    GlbWriter(FileWriter& out, GlbLabel label, std::size_t most_parts);
    ~GlbWriter();

    /// Empty parts are passed over. Throws ResourceError when the file would be larger than a GLB can say
    /// (4 GiB), std::logic_error on a part too many.
    void add(const GlbPart& part);
    void finish();

  private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace citysplat::io
