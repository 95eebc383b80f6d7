#include "splat/generation/growth_lanes.hpp"

// foreach_target.h compiles this file again for each instruction set and must come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "splat/generation/growth_lanes.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "splat/generation/growth_lanes_inl.hpp"
// clang-format on

#if HWY_ONCE
namespace citysplat::splat {

HWY_EXPORT(find_stop);
HWY_EXPORT(find_members);
HWY_EXPORT(suppress);
HWY_EXPORT(observe);

GrowthLanes growth_lanes() {
    // Dispatch tables start with an entry that finds out about the CPU; ask for that before taking pointers.
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return {HWY_DYNAMIC_DISPATCH(find_stop), HWY_DYNAMIC_DISPATCH(find_members),
            HWY_DYNAMIC_DISPATCH(suppress), HWY_DYNAMIC_DISPATCH(observe)};
}

}  // namespace citysplat::splat
#endif
