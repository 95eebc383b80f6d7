#pragma once

#include "core/file.hpp"

#include <filesystem>
#include <string_view>

namespace citysplat {

/// A file that gets its name when it is whole. Until commit() its content is in "NAME.citysplat-partial"
/// beside it, which goes away with the object; what had the name before stays as it is. A process that was
/// killed leaves only the partial file, and the next OutputFile of that name removes it. Protocol: the
/// partial file is locked while somebody writes it, so that a remainder can be told from work.
class OutputFile {
  public:
    enum class Buffering {
        small_writes,  ///< are collected until they are a large one
        none           ///< for who brings the content in large pieces
    };

    /// Throws IoError when the file cannot be made or `path` is something else than a file, BusyError when
    /// another process writes the same file at this moment.
    explicit OutputFile(const std::filesystem::path& path, Buffering buffering = Buffering::small_writes);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    FileWriter& writer() { return writer_; }
    const std::filesystem::path& path() const { return path_; }  ///< symbolic links are followed
    const std::filesystem::path& partial() const {
        return partial_;
    }  ///< where the content is until commit()
    /// Completes the content, and only then gives it the name. `durable` survives a loss of power.
    void commit(bool durable = false);

    static std::filesystem::path partial_of(const std::filesystem::path& path);

  private:
    std::filesystem::path path_, partial_;
    FileWriter writer_;
    File lock_;  ///< the same open file once more: the lock outlives the closing of the writer
    bool committed_ = false;
};

}  // namespace citysplat
