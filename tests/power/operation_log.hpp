#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Everything a program did to the files below one directory, in one total order. recorder.cpp writes such a
/// log while the program runs, model_disk.hpp plays it back.
namespace citysplat::power {

enum class OperationKind : std::uint32_t {
    create,          ///< a new empty file `path` with this inode
    make_directory,  ///< a new directory `path` with this inode
    write,           ///< `data` at `offset` of the inode
    truncate,        ///< the inode has `offset` bytes now
    sync,            ///< fsync or fdatasync of the inode
    rename,          ///< `path` is called `target` now, and replaces what was there
    link,            ///< `path` is also called `target` now
    remove,          ///< the name `path` is gone: unlink or rmdir
    unknown,         ///< `path` names a call that changes files in a way the log has no word for
    exit             ///< the program ended; `offset` is its exit code
};

/// A record of the log file: this header, then path, target and data, each with the bytes told here. Written
/// and read by programs of the same build only.
struct OperationHeader {
    OperationKind kind;
    std::uint32_t path_bytes, target_bytes, data_bytes;
    std::uint64_t inode;   ///< the number that the system gives the file
    std::uint64_t offset;  ///< of a write; size after truncate
};

/// Paths are relative to the recorded directory, which itself is "".
struct Operation {
    OperationKind kind{};
    std::uint64_t inode = 0, offset = 0;
    std::string path{};  ///< of writes and syncs: what the file was called when it was opened
    std::string target{};
    std::vector<std::byte> data{};
};

/// Reads the log of a program that worked below `root`. Throws when the log is cut off.
std::vector<Operation> read_log(const std::filesystem::path& log, const std::filesystem::path& root);

/// For people: "write 4096 bytes at 512 of city/catalog.sqlite".
std::string text_of(const Operation& operation);

}  // namespace citysplat::power
