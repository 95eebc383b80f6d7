// GLB files and tilesets, read as the specifications have them: nothing here knows how they were written.
import { readFileSync } from 'node:fs';

const COMPONENTS = { 5123: [2, 'readUInt16LE'], 5125: [4, 'readUInt32LE'], 5126: [4, 'readFloatLE'] };
const WIDTHS = { SCALAR: 1, VEC2: 2, VEC3: 3, VEC4: 4 };

/** Columns of 4 × 4 matrices. */
export const IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
export const times = (a, b) => IDENTITY.map((_, i) => [0, 1, 2, 3].reduce((sum, k) => sum + a[4 * k + i % 4] * b[4 * Math.floor(i / 4) + k], 0));
export const apply = (m, [x, y, z]) => [0, 1, 2].map((i) => m[i] * x + m[4 + i] * y + m[8 + i] * z + m[12 + i]);
const moved = (t) => IDENTITY.map((v, i) => (i >= 12 && i < 15 ? t[i - 12] : v));

export function readGlb(path) {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 0, 4) !== 'glTF' || bytes.readUInt32LE(8) !== bytes.length) throw new Error(`${path} is no GLB`);
  const length = bytes.readUInt32LE(12), json = JSON.parse(bytes.toString('utf8', 20, 20 + length)), binary = bytes.subarray(20 + length + 8);
  return { json, binary };
}

/** The values of an accessor, element by element. */
export function column({ json, binary }, number) {
  const accessor = json.accessors[number], view = json.bufferViews[accessor.bufferView], width = WIDTHS[accessor.type];
  const [size, read] = COMPONENTS[accessor.componentType], stride = view.byteStride ?? size * width, first = (view.byteOffset ?? 0) + (accessor.byteOffset ?? 0);
  return Array.from({ length: accessor.count }, (_, i) => Array.from({ length: width }, (_, k) => binary[read](first + i * stride + k * size)));
}

/** Calls visit(primitive, transform) for everything in the scene. */
function primitives(glb, visit) {
  const node = (number, above) => {
    const { matrix, translation = [0, 0, 0], mesh, children = [] } = glb.json.nodes[number], here = times(above, matrix ?? moved(translation));
    for (const primitive of mesh === undefined ? [] : glb.json.meshes[mesh].primitives) visit(primitive, here);
    for (const child of children) node(child, here);
  };
  for (const number of glb.json.scenes[glb.json.scene].nodes) node(number, IDENTITY);
}

/** Every vertex of the scene, y up, with what belongs to it. */
export function vertices(glb) {
  const found = [];
  primitives(glb, (primitive, here) => {
    const columns = Object.fromEntries(Object.entries(primitive.attributes).map(([name, a]) => [name, column(glb, a)]));
    columns.POSITION.forEach((p, i) => found.push({ at: apply(here, p), mode: primitive.mode, colour: columns.COLOR_0[i], label: columns._LABEL[i][0] }));
  });
  return found;
}

/** The corners of every triangle of the scene, y up. */
export function triangles(glb) {
  const found = [];
  primitives(glb, ({ attributes, indices, mode }, here) => {
    if (mode !== 4) return;
    const places = column(glb, attributes.POSITION).map((p) => apply(here, p)), numbers = column(glb, indices).map(([v]) => v);
    for (let i = 0; i < numbers.length; i += 3) found.push([0, 1, 2].map((k) => places[numbers[i + k]]));
  });
  return found;
}

/** What 3D Tiles do with the content of a tile: its y up becomes the z up of tilesets. */
export const zUp = ([x, y, z]) => [x, -z, y];

/** Calls visit(tile, transform, parent) for all tiles, parents first. */
export function walk(tile, visit, above = IDENTITY, parent = null) {
  const here = times(above, tile.transform ?? IDENTITY);
  visit(tile, here, parent);
  for (const child of tile.children ?? []) walk(child, visit, here, tile);
}
