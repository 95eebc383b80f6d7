#include "mesh/mesh_params.hpp"

#include "core/field_list.hpp"

namespace citysplat::mesh {

void MeshParams::validate() const { check_fields(*this, "mesh"); }
void MeshParams::add_to(Hasher& hasher) const { hash_fields(*this, hasher); }

}  // namespace citysplat::mesh
