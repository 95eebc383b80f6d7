#include "mesh/mesh_generation.hpp"

#include "core/error.hpp"
#include "core/math/rng_hd.hpp"
#include "core/parallel.hpp"
#include "mesh/marching_cubes.hpp"
#include "mesh/surface_facts.hpp"
#include "model/splat_hd.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace citysplat::mesh {

namespace {

/// Cells by number, [low, high) along x and y.
struct CellRange {
    std::int64_t low[2], high[2];

    bool contains(std::int64_t x, std::int64_t y) const {
        return x >= low[0] && x < high[0] && y >= low[1] && y < high[1];
    }
};

std::int32_t block_of(std::int32_t voxel) {
    return static_cast<std::int32_t>(floor_div(voxel, kBlockCells) * kBlockCells);
}

/// The blocks with cells of the core that points can reach, sorted.
std::vector<Voxel> blocks_in_reach(const VoxelPoints& points, int reach, const CellRange& core) {
    std::set<Voxel> blocks;
    Voxel previous{};
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Voxel& v = points.voxel(i);
        // Columns are long: a voxel that reaches the blocks of the one before it adds nothing.
        if (i > 0 && v.x == previous.x && v.y == previous.y &&
            block_of(v.z - reach) == block_of(previous.z - reach) &&
            block_of(v.z + reach) == block_of(previous.z + reach))
            continue;
        previous = v;
        for (std::int32_t x = block_of(v.x - reach); x <= block_of(v.x + reach); x += kBlockCells)
            for (std::int32_t y = block_of(v.y - reach); y <= block_of(v.y + reach); y += kBlockCells)
                for (std::int32_t z = block_of(v.z - reach); z <= block_of(v.z + reach); z += kBlockCells)
                    if (x < core.high[0] && x + kBlockCells > core.low[0] && y < core.high[1] &&
                        y + kBlockCells > core.low[1])
                        blocks.insert({x, y, z});
    }
    return {blocks.begin(), blocks.end()};
}

struct Piece {
    std::vector<MeshVertex> vertices;
    std::vector<MeshTriangle> triangles;
    /// Of its vertices, in order, those that another piece may have as well, or this one twice.
    std::vector<std::uint32_t> shared;
};

/// True when cells of another block have this edge.
bool is_on_border(const GridEdge& edge) {
    const std::int32_t along[3] = {edge.corner.x, edge.corner.y, edge.corner.z};
    for (int axis = 0; axis < 3; ++axis)
        if (axis != edge.axis && along[axis] % kBlockCells == 0) return true;
    return false;
}

/// The vertex where the surface crosses an edge, its distances of opposite sign.
struct Crossing {
    GridEdge edge;
    Corner::Side low, high;
};

/// Makes the triangles of one block after the other.
class BlockMesher {
  public:
    BlockMesher(const VoxelPoints& points, const CornerField& field, const CellRange& core,
                const CancelToken& cancel)
        : points_(points),
          core_(core),
          cancel_(cancel),
          sums_(field.reach_voxels()),
          worker_(field.make_worker(points, cancel)) {}

    Piece make(const Voxel& block) {
        Piece piece;
        if (!sums_.load(points_, block)) return piece;
        std::fill(corners_.corners.begin(), corners_.corners.end(), Corner{});
        worker_->fill(sums_, corners_);
        std::fill(number_of_.begin(), number_of_.end(), kNone);
        for (int z = 0; z < kBlockCells; ++z)
            for (int y = 0; y < kBlockCells; ++y)
                for (int x = 0; x < kBlockCells; ++x)
                    if (core_.contains(block.x + x, block.y + y)) add_cell({x, y, z}, piece);
        return piece;
    }

  private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    using Sides = std::array<std::uint8_t, kCellCorners>;

    static Voxel corner_of(const Voxel& cell, int i) {
        return {cell.x + (i & 1), cell.y + (i >> 1 & 1), cell.z + (i >> 2 & 1)};
    }
    const Corner& corner(const Voxel& c) const { return corners_.corners[CornerBlock::at(c.x, c.y, c.z)]; }

    void add_cell(const Voxel& cell, Piece& piece) {
        int two_sided = kCellCorners;
        for (int i = kCellCorners - 1; i >= 0; --i) {
            const std::uint8_t sides = corner(corner_of(cell, i)).sides;
            if (sides == 0) return;
            if (sides == 2) two_sided = i;
        }
        if (two_sided == kCellCorners) {
            add_surface(cell, Sides{}, piece);
            return;
        }
        // Two surfaces: of the sides that face as one side of some corner does, and of those that face the
        // other way.
        const Vec3f reference = unpack_normal(corner(corner_of(cell, two_sided)).side[0].normal);
        for (const Vec3f facing : {reference, -reference}) {
            Sides sides{};
            if (choose_sides(cell, facing, sides)) add_surface(cell, sides, piece);
        }
    }

    /// For each corner the side that faces this way; false when one has none.
    bool choose_sides(const Voxel& cell, Vec3f facing, Sides& sides) const {
        for (int i = 0; i < kCellCorners; ++i) {
            const Corner& c = corner(corner_of(cell, i));
            const auto along = [&](std::size_t s) { return dot(unpack_normal(c.side[s].normal), facing); };
            const std::size_t best = c.sides == 2 && along(1) > along(0) ? 1 : 0;
            if (!(along(best) > 0)) return false;
            sides[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(best);
        }
        return true;
    }

    void add_surface(const Voxel& cell, const Sides& sides, Piece& piece) {
        std::uint8_t behind = 0;
        for (int i = 0; i < kCellCorners; ++i)
            if (corner(corner_of(cell, i)).side[sides[static_cast<std::size_t>(i)]].distance < 0)
                behind |= static_cast<std::uint8_t>(1 << i);
        for (const CellTriangle& triangle : triangles_of_cell(behind)) {
            MeshTriangle numbers;
            for (std::size_t i = 0; i < 3; ++i) numbers[i] = vertex_on(cell, triangle[i], sides, piece);
            piece.triangles.push_back(numbers);
        }
    }

    /// The number of the vertex on an edge, made when it is new.
    std::uint32_t vertex_on(const Voxel& cell, std::uint8_t edge_number, const Sides& sides, Piece& piece) {
        const CellEdge& edge = kCellEdge[edge_number];
        const Voxel low = corner_of(cell, edge.low), high = corner_of(cell, edge.high);
        const std::uint8_t a = sides[edge.low], b = sides[edge.high];
        const std::size_t place = ((CornerBlock::at(low.x, low.y, low.z) * 3 + edge.axis) * 2 + a) * 2 + b;
        std::uint32_t& number = number_of_[place];
        if (number == kNone) {
            cancel_.check();
            number = static_cast<std::uint32_t>(piece.vertices.size());
            const Crossing crossing{{low, edge.axis}, corner(low).side[a], corner(high).side[b]};
            piece.vertices.push_back(vertex_at(crossing));
            if (is_on_border(crossing.edge) || corner(low).sides + corner(high).sides > 2)
                piece.shared.push_back(number);
        }
        return number;
    }

    MeshVertex vertex_at(const Crossing& c) const {
        const std::int64_t steps = points_.grid().steps();
        const std::int64_t low = std::abs(std::int64_t{c.low.distance}),
                           high = std::abs(std::int64_t{c.high.distance});
        // Never at a corner, where vertices of other edges might be: a vertex has its place for itself.
        const std::int64_t along =
            std::clamp((2 * steps * low + low + high) / (2 * (low + high)), std::int64_t{1}, steps - 1);
        const double t = static_cast<double>(along) / static_cast<double>(steps);
        const Vec3d from = vec_cast<double>(unpack_normal(c.low.normal)),
                    to = vec_cast<double>(unpack_normal(c.high.normal));
        const Vec3d between = from * (1 - t) + to * t;
        // Where normals are opposed, that of the nearer corner.
        const Vec3d normal = dot(between, between) > 0.01 ? normalized(between) : (t < 0.5 ? from : to);
        const VoxelGrid& grid = points_.grid();
        const Voxel& block = sums_.block();
        const auto coordinate = [&](int axis, std::int64_t number) {
            return static_cast<std::int32_t>(grid.corner(axis, number) + (axis == c.edge.axis ? along : 0));
        };
        MeshVertex vertex{.x = coordinate(0, block.x + c.edge.corner.x),
                          .y = coordinate(1, block.y + c.edge.corner.y),
                          .z = coordinate(2, block.z + c.edge.corner.z),
                          .normal = pack_normal(normal),
                          .label = 0,
                          .intensity = 0,
                          .range = kUnknownByte,
                          .incidence = kUnknownByte};
        describe_vertex(points_, sums_, {c.edge, 2 * along > steps, normal}, vertex);
        return vertex;
    }

    const VoxelPoints& points_;
    CellRange core_;
    const CancelToken& cancel_;
    BoxSums sums_;
    CornerBlock corners_;
    std::unique_ptr<CornerField::Worker> worker_;
    /// By low corner, axis, and the sides of both corners.
    std::vector<std::uint32_t> number_of_ =
        std::vector<std::uint32_t>(corners_.corners.size() * std::size_t{12}, kNone);
};

/// The triangles of the blocks. The points are gone when it returns.
std::vector<Piece> make_pieces(tiling::Region region, std::int64_t voxel_steps, const CornerField& field,
                               const CancelToken& cancel) {
    const VoxelGrid grid(region.frame, voxel_steps);
    const CellRange core{{grid.first_corner(0, region.core.min_x), grid.first_corner(1, region.core.min_y)},
                         {grid.first_corner(0, region.core.max_x), grid.first_corner(1, region.core.max_y)}};
    const VoxelPoints points(grid, std::move(region.points));
    const std::vector<Voxel> blocks = blocks_in_reach(points, field.reach_voxels(), core);
    std::vector<Piece> pieces(blocks.size());
    constexpr std::size_t kBlocksAtOnce = 32;
    for_each_chunk(blocks.size(), kBlocksAtOnce, cancel, [&](std::size_t begin, std::size_t end) {
        BlockMesher mesher(points, field, core, cancel);
        for (std::size_t i = begin; i < end; ++i) {
            cancel.check();
            pieces[i] = mesher.make(blocks[i]);
        }
    });
    return pieces;
}

/// Joins the pieces; vertices that are equal become one.
Piece joined(std::vector<Piece> pieces, const CancelToken& cancel) {
    struct SamePlace {
        std::size_t operator()(const MeshVertex& v) const {
            const auto word = [](std::int32_t c) { return static_cast<std::uint64_t>(c); };
            return rng::mix(rng::mix(word(v.x) << 32 ^ word(v.y)) + (word(v.z) << 32 ^ v.normal));
        }
    };
    std::size_t vertices = 0, triangles = 0;
    for (const Piece& piece : pieces) vertices += piece.vertices.size(), triangles += piece.triangles.size();
    Piece whole;
    whole.vertices.reserve(vertices);
    whole.triangles.reserve(triangles);
    std::unordered_map<MeshVertex, std::uint32_t, SamePlace> number_of;
    for (Piece& piece : pieces) {
        cancel.check();
        std::vector<std::uint32_t> number;
        number.reserve(piece.vertices.size());
        auto next_shared = piece.shared.begin();
        for (std::size_t i = 0; i < piece.vertices.size(); ++i) {
            auto n = static_cast<std::uint32_t>(whole.vertices.size());
            bool is_new = true;
            if (next_shared != piece.shared.end() && *next_shared == i) {
                const auto [place, inserted] = number_of.try_emplace(piece.vertices[i], n);
                n = place->second, is_new = inserted;
                ++next_shared;
            }
            if (is_new) whole.vertices.push_back(piece.vertices[i]);
            number.push_back(n);
        }
        for (const auto& [a, b, c] : piece.triangles)
            whole.triangles.push_back({number[a], number[b], number[c]});
        piece = {};
    }
    return whole;
}

/// Moves the vertices to a frame whose height is the whole metre in the middle of theirs, so that 24 bits
/// hold it.
TileFrame choose_frame(std::vector<MeshVertex>& vertices, TileFrame frame) {
    if (vertices.empty()) return frame;
    const auto [low, high] = std::minmax_element(
        vertices.begin(), vertices.end(), [](const MeshVertex& a, const MeshVertex& b) { return a.z < b.z; });
    const std::int64_t middle_m =
        floor_div((std::int64_t{low->z} + std::int64_t{high->z}) / 2, kLatticePerMetre);
    if (std::int64_t{high->z} - std::int64_t{low->z} >
        2 * std::int64_t{MeshTile::kMaxSteps} - 2 * kLatticePerMetre)
        throw InputError(
            "triangles of one tile lie more than 2 km apart in height; remove outliers of the input");
    const auto down = static_cast<std::int32_t>(middle_m * kLatticePerMetre);
    for (MeshVertex& v : vertices) v.z -= down;
    frame.z_m += middle_m;
    return frame;
}

}  // namespace

std::int64_t reach_steps(std::int64_t voxel_steps, const CornerField& field) {
    return (field.reach_voxels() + 1) * voxel_steps;
}

MeshTile make_mesh(tiling::Region region, std::int64_t voxel_steps, const CornerField& field,
                   const CancelToken& cancel) {
    const TileFrame frame = region.frame;
    Piece whole = joined(make_pieces(std::move(region), voxel_steps, field, cancel), cancel);
    const TileFrame chosen = choose_frame(whole.vertices, frame);
    return {chosen, whole.vertices, whole.triangles};
}

}  // namespace citysplat::mesh
