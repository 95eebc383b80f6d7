#pragma once

#include "model/assembled/stored_things.hpp"

namespace citysplat::objects {

/// Snapshots and object banks on disk.
class StoredFolders final : public StoredThings {
  public:
    FrameSourcePtr frames(const std::filesystem::path& folder) const override;
    ObjectSourcePtr objects(const std::filesystem::path& folder) const override;
};

}  // namespace citysplat::objects
