#include "power/model_disk.hpp"

#include "core/math/rng_hd.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace citysplat::power {

namespace {

constexpr std::uint64_t kSectorBytes = 512;

[[noreturn]] void impossible(const Operation& operation, const std::string& why) {
    throw std::runtime_error("cannot play back \"" + text_of(operation) + "\": " + why);
}

/// Visits every path that can be reached, directories before what is in them.
template <class NamesOf, class Visit>
void walk(std::size_t directory, const std::string& prefix, const NamesOf& names_of, const Visit& visit) {
    for (const auto& [name, child] : names_of(directory))
        if (visit(prefix + name, child)) walk(child, prefix + name + "/", names_of, visit);
}

}  // namespace

/// Random decisions of one cut.
class ModelDisk::Chance {
  public:
    explicit Chance(std::uint64_t seed) : key_(rng::mix(seed)), keep_(0.25 * double(1 + number(3))) {}
    std::uint64_t number(std::uint64_t below) { return rng::bits(key_, counter_++) % below; }
    bool happens(double probability) { return rng::uniform(key_, counter_++) < probability; }
    bool keeps() { return happens(keep_); }

  private:
    std::uint64_t key_, counter_ = 0;
    double keep_;  ///< some cuts lose much, some little
};

std::string text_of(const Survival& survival) {
    switch (survival.kind) {
        case Survival::Kind::nothing:
            return "nothing survives";
        case Survival::Kind::names:
            return "names survive";
        case Survival::Kind::data:
            return "data survives";
        case Survival::Kind::everything:
            return "everything survives";
        case Survival::Kind::mixture:
            return "mixture " + std::to_string(survival.seed);
    }
    return {};
}

ModelDisk::ModelDisk(const DiskSnapshot& durable, NameModel model) : model_(model) {
    for (const DiskSnapshot::Entry& entry : durable.entries) {
        const NodeId id = nodes_.size();
        Node& node = nodes_.emplace_back();
        node.is_directory = !entry.content;
        node.durable = entry.content;
        if (entry.content) node.live = entry.content->bytes;
        node_of_inode_[entry.inode] = id;
        if (entry.path.empty()) continue;
        const Place place = place_of(entry.path);
        nodes_[place.directory].live_names[place.name] = id;
        nodes_[place.directory].durable_names[place.name] = id;
    }
}

void ModelDisk::take_inodes_of(const DiskSnapshot& directory) {
    node_of_inode_.clear();
    for (const DiskSnapshot::Entry& entry : directory.entries)
        node_of_inode_[entry.inode] = entry.path.empty() ? 0 : child_at(place_of(entry.path));
}

ModelDisk::Place ModelDisk::place_of(const std::string& path) const {
    NodeId directory = 0;
    std::size_t begin = 0;
    for (std::size_t slash; (slash = path.find('/', begin)) != std::string::npos; begin = slash + 1)
        directory = child_at({directory, path.substr(begin, slash - begin)});
    return {directory, path.substr(begin)};
}

ModelDisk::NodeId ModelDisk::child_at(const Place& place) const {
    const Names& names = nodes_[place.directory].live_names;
    const auto found = names.find(place.name);
    if (found == names.end()) throw std::runtime_error(place.name + " was never made");
    return found->second;
}

ModelDisk::NodeId ModelDisk::file_of(const Operation& operation) const {
    const auto found = node_of_inode_.find(operation.inode);
    if (found == node_of_inode_.end()) impossible(operation, "nobody made this file");
    return found->second;
}

void ModelDisk::apply(const Operation& operation) {
    switch (operation.kind) {
        case OperationKind::create:
            return add(operation, false);
        case OperationKind::make_directory:
            return add(operation, true);
        case OperationKind::write:
        case OperationKind::truncate:
            return write(nodes_[file_of(operation)], operation);
        case OperationKind::sync:
            return sync(file_of(operation));
        case OperationKind::rename:
            return rename(operation);
        case OperationKind::link: {
            const Place to = place_of(operation.target);
            return change_names({{to.directory, to.name, child_at(place_of(operation.path))}});
        }
        case OperationKind::remove: {
            const Place place = place_of(operation.path);
            static_cast<void>(child_at(place));
            return change_names({{place.directory, place.name, std::nullopt}});
        }
        case OperationKind::unknown:
            impossible(operation, "the recorder has no word for it");
        case OperationKind::exit:
            return;
    }
}

void ModelDisk::add(const Operation& operation, bool is_directory) {
    const Place place = place_of(operation.path);
    const NodeId id = nodes_.size();
    Node& node = nodes_.emplace_back();
    node.is_directory = is_directory;
    if (!is_directory) node.durable = std::make_shared<Content>(Bytes{});
    node_of_inode_[operation.inode] = id;
    change_names({{place.directory, place.name, id}});
}

void ModelDisk::rename(const Operation& operation) {
    const Place from = place_of(operation.path), to = place_of(operation.target);
    const NameChange added{to.directory, to.name, child_at(from)};
    const NameChange removed{from.directory, from.name, std::nullopt};
    if (model_ == NameModel::unordered && from.directory != to.directory) {
        change_names({added});
        change_names({removed});
    } else {
        change_names({added, removed});
    }
}

void ModelDisk::change_names(NameOperation operation) {
    for (const NameChange& change : operation) {
        apply_change(nodes_[change.directory].live_names, change);
    }
    unsynced_names_.push_back(std::move(operation));
}

void ModelDisk::write(Node& node, const Operation& operation) {
    node.unsynced.push_back({operation.kind == OperationKind::truncate, operation.offset, operation.data});
    apply_change(node.live, node.unsynced.back());
}

void ModelDisk::sync(NodeId id) {
    Node& node = nodes_[id];
    if (!node.is_directory && !node.unsynced.empty()) {
        node.durable = std::make_shared<Content>(node.live);
        node.unsynced.clear();
    }
    const auto is_committed = [&](const NameOperation& operation) {
        return model_ == NameModel::ordered || operation.front().directory == id;
    };
    for (const NameOperation& operation : unsynced_names_) {
        if (!is_committed(operation)) continue;
        for (const NameChange& change : operation) {
            apply_change(nodes_[change.directory].durable_names, change);
        }
    }
    std::erase_if(unsynced_names_, is_committed);
}

void ModelDisk::apply_change(Names& names, const NameChange& change) {
    if (change.child)
        names[change.name] = *change.child;
    else
        names.erase(change.name);
}

void ModelDisk::apply_change(Bytes& bytes, const DataChange& change) {
    if (change.is_truncate) {
        bytes.resize(change.offset);
        return;
    }
    bytes.resize(std::max<std::size_t>(bytes.size(), change.offset + change.data.size()));
    std::copy(change.data.begin(), change.data.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void ModelDisk::apply_by_chance(Bytes& bytes, const DataChange& change, Chance& chance) {
    if (!chance.keeps()) return;
    if (change.is_truncate || chance.happens(0.6)) return apply_change(bytes, change);
    if (chance.happens(0.3)) return apply_change(bytes, {false, change.offset, Bytes(change.data.size())});
    // Torn: any of the sectors, as the disk knows them.
    const std::uint64_t end = change.offset + change.data.size();
    for (std::uint64_t at = change.offset; at < end;) {
        const std::uint64_t next = std::min(end, (at / kSectorBytes + 1) * kSectorBytes);
        const auto part = change.data.begin() + static_cast<std::ptrdiff_t>(at - change.offset);
        if (chance.happens(0.5))
            apply_change(bytes, {false, at, Bytes(part, part + static_cast<std::ptrdiff_t>(next - at))});
        at = next;
    }
}

ContentPointer ModelDisk::content_after(const Node& node, const Survival& survival, Chance& chance) const {
    using Kind = Survival::Kind;
    if (node.unsynced.empty() || survival.kind == Kind::nothing || survival.kind == Kind::names)
        return node.durable;
    if (survival.kind != Kind::mixture) return std::make_shared<Content>(node.live);
    Bytes bytes = node.durable->bytes;
    for (const DataChange& change : node.unsynced) apply_by_chance(bytes, change, chance);
    return std::make_shared<Content>(std::move(bytes));
}

DiskTree ModelDisk::live() const {
    DiskTree tree;
    walk(
        0, "", [&](NodeId id) -> const Names& { return nodes_[id].live_names; },
        [&](const std::string& path, NodeId id) {
            const Node& node = nodes_[id];
            tree[path] = node.is_directory ? nullptr : std::make_shared<Content>(node.live);
            return node.is_directory;
        });
    return tree;
}

DiskTree ModelDisk::after_cut(const Survival& survival) const {
    using Kind = Survival::Kind;
    Chance chance(survival.seed);
    const std::size_t in_order = chance.number(unsynced_names_.size() + 1);  // of an ordered mixture
    const auto is_kept = [&](std::size_t i) {
        if (survival.kind != Kind::mixture)
            return survival.kind != Kind::nothing && survival.kind != Kind::data;
        return model_ == NameModel::ordered ? i < in_order : chance.keeps();
    };
    std::map<NodeId, Names> changed;
    for (std::size_t i = 0; i < unsynced_names_.size(); ++i) {
        if (!is_kept(i)) continue;
        for (const NameChange& change : unsynced_names_[i]) {
            const Names& durable = nodes_[change.directory].durable_names;
            apply_change(changed.try_emplace(change.directory, durable).first->second, change);
        }
    }
    DiskTree tree;
    std::map<NodeId, ContentPointer> contents;  // a file with two names has one content
    walk(
        0, "",
        [&](NodeId id) -> const Names& {
            const auto found = changed.find(id);
            return found != changed.end() ? found->second : nodes_[id].durable_names;
        },
        [&](const std::string& path, NodeId id) {
            const Node& node = nodes_[id];
            ContentPointer& content = contents[id];
            if (!node.is_directory && !content) content = content_after(node, survival, chance);
            tree[path] = content;
            return node.is_directory;
        });
    return tree;
}

}  // namespace citysplat::power
