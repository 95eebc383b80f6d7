#pragma once

#include "core/output_file.hpp"
#include "model/track.hpp"
#include "objects/object_shape.hpp"
#include "objects/splat_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citysplat::objects {

/// One object of a bank, with what is known of its making.
struct BankObject {
    std::string name;        ///< unique in the bank
    std::string class_name;  ///< in the words of the tracks it comes from
    ObjectSize size;         ///< of its box
    std::uint16_t label = 0;
    std::string source, track;            ///< where it comes from
    double begin_s = 0, end_s = 0;        ///< when it was seen
    std::uint32_t frames = 0, looks = 0;  ///< looks that it is made of, and all there were
    std::uint64_t points = 0;             ///< that were seen, in those frames
    std::uint64_t mirrored_points = 0;    ///< added from its other side
    double thickness_m = 0;               ///< mean, of its surfaces
    double thickness_by_boxes_m = 0;      ///< the same without alignment
    Coverage coverage{};
    StoredSplats splats;

    double mirrored_share() const {
        return points == 0
                   ? 0
                   : static_cast<double>(mirrored_points) / static_cast<double>(points + mirrored_points);
    }
};

/// A folder of objects (docs/formats.md): bank.json, the index, in words; splats/HASH.splats, one payload per
/// object. Objects are sorted by name.
class Bank {
  public:
    /// Throws ConfigError when there is no bank, CorruptionError when the index is damaged.
    static Bank open(const std::filesystem::path& folder);
    static bool is_bank(const std::filesystem::path& folder);

    const std::filesystem::path& folder() const { return folder_; }
    std::span<const BankObject> objects() const { return objects_; }
    /// Throws UsageError with names that are like it.
    const BankObject& find(std::string_view name) const;
    /// Reads and verifies the splats of an object, in its own frame.
    SplatTile load(const BankObject& object) const;

  private:
    std::filesystem::path folder_;
    std::vector<BankObject> objects_;
};

/// Adds objects to a bank, or makes one. Protocol: one writer at a time, also among processes; the index
/// appears, whole, with commit(), and without it the bank stays as it was. Objects of the same name are
/// replaced. Payloads that no index names any more stay.
class BankWriter {
  public:
    /// Throws ConfigError when the folder holds something that is no bank, BusyError when somebody else is
    /// writing it.
    explicit BankWriter(const std::filesystem::path& folder);
    /// Stores the splats and remembers the object; returns it with what is known of its splats. Safe to call
    /// from several threads, in any order.
    BankObject add(BankObject object, const SplatTile& splats);
    void commit();

  private:
    std::filesystem::path folder_;
    std::unique_ptr<OutputFile> index_;
    std::vector<BankObject> objects_;
    std::mutex mutex_;
};

/// The index of a bank as text, and back. `origin` is named in messages.
std::string index_text(std::span<const BankObject> objects);
std::vector<BankObject> parse_index(std::string_view text, const std::string& origin);

/// What somebody wants of a bank.
struct BankWish {
    std::string class_name;  ///< empty: any
    ObjectSize size;         ///< of the box to fill; zeros: any
    std::vector<double>
        azimuths_rad;  ///< from where it will be seen, in its own frame; empty: from all sides
    std::uint64_t seed = 0;
    std::string track;  ///< who it is for: two tracks need not get the same object
};
/// One of the five objects that suit best, by a hash of seed and track (LiDARsim §5.1). The score of an
/// object is the sum of its relative differences in length, width and height, and twice the share that is not
/// covered from the wanted directions. nullptr when the bank has none of the class.
const BankObject* choose(std::span<const BankObject> objects, const BankWish& wish);
double score(const BankObject& object, const BankWish& wish);

}  // namespace citysplat::objects
