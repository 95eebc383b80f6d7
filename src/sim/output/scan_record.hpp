#pragma once

#include "sim/output/scan_format.hpp"

#include <array>

/// The record that LAS (behind its own fields), PLY and PCD share: everything about a return that is not its
/// position, intensity or time.
namespace citysplat::sim {

enum class FieldType : std::uint8_t { u8, u16, u32, f32, f64 };

struct Field {
    const char* name;
    FieldType type;
    const char* meaning;
};

inline constexpr std::array<Field, 13> kReturnFields{{
    {"range", FieldType::f32, "measured range, metres"},
    {"time_offset", FieldType::f32, "seconds since the scan began"},
    {"nx", FieldType::f32, "normal of the splat, towards the sensor"},
    {"ny", FieldType::f32, ""},
    {"nz", FieldType::f32, ""},
    {"incidence", FieldType::f32, "angle to the normal, degrees"},
    {"ray", FieldType::u32, "place in firing order"},
    {"splat_high", FieldType::u32, "id of the splat, upper 32 bits"},
    {"splat_low", FieldType::u32, "lower 32 bits; both 0: none"},
    {"beam", FieldType::u16, "laser"},
    {"label", FieldType::u16, "semantic class"},
    {"hits", FieldType::u8, "splats that contributed"},
    {"status", FieldType::u8, "0 none, 1 return, 2 dropped, 3 missing tile"},
}};
inline constexpr std::size_t kReturnBytes = 6 * 4 + 3 * 4 + 2 * 2 + 2;

void put_return(std::byte*& at, std::uint32_t ray, const Return& r);

}  // namespace citysplat::sim
