#include "tiling/store/record_codec.hpp"

namespace citysplat::tiling {

namespace {

/// One list of fields for both directions.
template <class Row, class Each>
void product_fields(Row& p, std::uint32_t version, const Each& each) {
    each(p.key), each(p.core);
    each(p.tile.level), each(p.tile.ix), each(p.tile.iy);
    if (version >= 6) each(p.tile.kind);
    each(p.object_bytes), each(p.points), each(p.splats);
    each(p.halo_steps), each(p.digest), each(p.box);
    if (version >= 3) each(p.removed);
}

}  // namespace

void RecordWriter::append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Hash128 RecordWriter::write(ObjectStore& store) const {
    auto writer = store.create();
    writer.append(bytes_);
    return writer.finish();
}

RecordReader::RecordReader(const ObjectStore& store, const Hash128& object, const std::string& what,
                           std::uint32_t newest)
    : what_(what + " " + object.hex()) {
    const File file = store.open(object, what_);
    all_.resize(file.size());
    file.read_at(0, all_);
    if (hash_bytes(all_) != object) damaged();
    rest_ = all_;
    Magic magic;
    get(magic).get(version_);
    if (version_ < 1 || version_ > newest)
        throw ConfigError(what_ + " has version " + std::to_string(version_) +
                          "; this citysplat knows versions 1 to " + std::to_string(newest));
}

void put_tile(RecordWriter& out, const TileKey& tile) {
    out.put(tile.level).put(tile.ix).put(tile.iy).put(tile.kind);
}

TileKey get_tile(RecordReader& in) {
    TileKey tile;
    in.get(tile.level).get(tile.ix).get(tile.iy).get(tile.kind);
    if (!is_known(tile.kind)) in.damaged();
    return tile;
}

void put_products(RecordWriter& out, std::span<const ProductRow> products, std::uint32_t version) {
    out.put(static_cast<std::uint64_t>(products.size()));
    for (const ProductRow& product : products) {
        product_fields(product, version, [&out](const auto& value) { out.put(value); });
        out.put(static_cast<std::uint8_t>(product.object.has_value()))
            .put(product.object.value_or(Hash128{}));
    }
}

std::vector<ProductRow> get_products(RecordReader& in, std::uint32_t version) {
    std::vector<ProductRow> products(in.count(sizeof(Hash128)));
    for (ProductRow& product : products) {
        product_fields(product, version, [&in](auto& value) { in.get(value); });
        if (!is_known(product.tile.kind)) in.damaged();
        std::uint8_t has_object;
        Hash128 hash;
        in.get(has_object).get(hash);
        if (has_object) product.object = hash;
    }
    return products;
}

}  // namespace citysplat::tiling
