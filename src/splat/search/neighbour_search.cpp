#include "splat/search/neighbour_search.hpp"

// foreach_target.h compiles this file again for each instruction set and must come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "splat/search/neighbour_search.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "splat/search/neighbour_search_inl.hpp"
// clang-format on

#if HWY_ONCE
namespace citysplat::splat {

SearchScratch::SearchScratch() : buffers_(std::make_unique<Buffers>()) {}
SearchScratch::~SearchScratch() = default;
SearchScratch::SearchScratch(SearchScratch&&) noexcept = default;
SearchScratch& SearchScratch::operator=(SearchScratch&&) noexcept = default;

HWY_EXPORT(search_moments);
HWY_EXPORT(search_lists);
HWY_EXPORT(target_name);

void find_moments(const NeighbourIndex& index, const QueryBatch& batch, std::span<Moments> out,
                  SearchScratch& scratch) {
    HWY_DYNAMIC_DISPATCH(search_moments)(index, batch, out, scratch.buffers());
}

void find_neighbours(const NeighbourIndex& index, const QueryBatch& batch, NeighbourLists& out,
                     SearchScratch& scratch) {
    HWY_DYNAMIC_DISPATCH(search_lists)(index, batch, out, scratch.buffers());
}

std::string_view instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace citysplat::splat
#endif
