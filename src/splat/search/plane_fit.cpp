#include "splat/search/plane_fit.hpp"

// foreach_target.h compiles this file again for each instruction set and must come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "splat/search/plane_fit.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "splat/search/plane_fit_inl.hpp"
// clang-format on

#if HWY_ONCE
namespace citysplat::splat {

HWY_EXPORT(fit_all);

void fit_planes(std::span<const Moments> moments, std::span<PlaneFit> out) {
    HWY_DYNAMIC_DISPATCH(fit_all)(moments, out);
}

}  // namespace citysplat::splat
#endif
