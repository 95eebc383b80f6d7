#include "power/operation_log.hpp"

#include "core/file.hpp"

#include <cstring>
#include <span>
#include <stdexcept>

namespace citysplat::power {

namespace {

class LogReader {
  public:
    explicit LogReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
    bool at_end() const { return bytes_.empty(); }
    std::span<const std::byte> take(std::size_t n) {
        if (bytes_.size() < n) throw std::runtime_error("the log of operations is cut off");
        const auto part = bytes_.first(n);
        bytes_ = bytes_.subspan(n);
        return part;
    }
    std::string text(std::size_t n) {
        const auto part = take(n);
        return {reinterpret_cast<const char*>(part.data()), part.size()};
    }

  private:
    std::span<const std::byte> bytes_;
};

std::string below(const std::string& root, const std::string& path) {
    if (path == root) return {};
    return path.starts_with(root + "/") ? path.substr(root.size() + 1) : path;
}

}  // namespace

std::vector<Operation> read_log(const std::filesystem::path& log, const std::filesystem::path& root) {
    const std::vector<std::byte> bytes = read_file(log);
    LogReader in(bytes);
    std::vector<Operation> operations;
    while (!in.at_end()) {
        OperationHeader header{};
        std::memcpy(&header, in.take(sizeof header).data(), sizeof header);
        Operation operation;
        operation.kind = header.kind;
        operation.inode = header.inode;
        operation.offset = header.offset;
        operation.path = below(root.string(), in.text(header.path_bytes));
        operation.target = below(root.string(), in.text(header.target_bytes));
        const auto data = in.take(header.data_bytes);
        operation.data.assign(data.begin(), data.end());
        operations.push_back(std::move(operation));
    }
    return operations;
}

std::string text_of(const Operation& operation) {
    const std::string offset = std::to_string(operation.offset);
    switch (operation.kind) {
        case OperationKind::create:
            return "create " + operation.path;
        case OperationKind::make_directory:
            return "make directory " + operation.path;
        case OperationKind::write:
            return "write " + std::to_string(operation.data.size()) + " bytes at " + offset + " of " +
                   operation.path;
        case OperationKind::truncate:
            return "truncate " + operation.path + " to " + offset;
        case OperationKind::sync:
            return "sync " + operation.path;
        case OperationKind::rename:
            return "rename " + operation.path + " to " + operation.target;
        case OperationKind::link:
            return "link " + operation.path + " as " + operation.target;
        case OperationKind::remove:
            return "remove " + operation.path;
        case OperationKind::unknown:
            return "unknown call " + operation.path;
        case OperationKind::exit:
            return "exit with " + offset;
    }
    return {};
}

}  // namespace citysplat::power
