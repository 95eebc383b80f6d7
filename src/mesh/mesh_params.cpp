#include "mesh/mesh_params.hpp"

#include "splat/params/field_list.hpp"

namespace citysplat::mesh {

void MeshParams::validate() const { splat::check_fields(*this, "mesh"); }
void MeshParams::add_to(Hasher& hasher) const { splat::hash_fields(*this, hasher); }

}  // namespace citysplat::mesh
