#pragma once

#include "core/cancel.hpp"
#include "objects/registration.hpp"

#include <cstdint>
#include <vector>

namespace citysplat::objects {

/// What became of one look at an object.
struct AlignedFrame {
    bool accepted = false;
    Pose object_from_box;  ///< where its points belong, from where its box has them
    double inliers = 0, overlap = 0;
};

/// The looks of an object laid on top of one another.
struct Alignment {
    std::vector<AlignedFrame> frames;  ///< as in the cut
    std::vector<ObjectPoint> points;   ///< of the accepted ones, in canonical order
    double thickness_before_m = 0;     ///< of the same points where the boxes have them
    double thickness_m = 0;
    std::size_t accepted = 0;
};

/// Begins with the frame of most points and adds the others in the order of their points; those that do not
/// meet the surface yet are tried again when it has grown. Where no frame has enough points for a surface the
/// boxes put all of them together. Three rounds then lay each frame on all the others.
/// The frame of the object becomes the mean of the boxes of its accepted frames. Deterministic; one thread.
Alignment align_frames(const ObjectCut& cut, const RegistrationOptions& options, const CancelToken& cancel);

/// The other half of something symmetric: points mirrored across its middle plane, which is half a width from
/// the side that was seen and turned so that the mirror image lies on what was seen. Only those where nothing
/// was seen within 4 to 8 cm.
struct MirrorImage {
    std::vector<ObjectPoint> points;  ///< in canonical order
    bool aligned = false;             ///< the plane was found; else it is that of the box
};
/// Nothing when what was seen contradicts the symmetry.
MirrorImage mirror_image(const ObjectSize& size, std::span<const ObjectPoint> points,
                         const RegistrationOptions& options);

/// Room for an object whose box errs.
struct ObjectRoom {
    Vec3d min, max;
};
ObjectRoom room_of(const ObjectSize& size);

}  // namespace citysplat::objects
