// A mesh as GLB files and as 3D Tiles: every triangle held against the PLY file of the same city, and looked at from above.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { check, finish, test } from '../browser/check.mjs';
import { readGlb, triangles, walk, zUp, apply } from './glb.mjs';

const { CHROMIUM, MODULES, SCRATCH } = process.env, validator = createRequire(`${MODULES}/`)('gltf-validator');
const tileset = JSON.parse(readFileSync(`${SCRATCH}/mesh_tiles/tileset.json`)), contents = readdirSync(`${SCRATCH}/mesh_tiles/content`);
const parts = readdirSync(`${SCRATCH}/mesh_parts`);

/** Triangles of a PLY file with x, y, z in double and faces of three, read without the program. */
function plyTriangles(path) {
  const bytes = readFileSync(path), end = bytes.indexOf('end_header\n') + 11, head = bytes.toString('latin1', 0, end);
  const count = (what) => Number(head.match(`element ${what} (\\d+)`)[1]), widths = { double: 8, float: 4, ushort: 2, uchar: 1 };
  const row = [...head.matchAll(/property (\w+) \w+\n/g)].reduce((sum, [, type]) => sum + widths[type], 0), faces = end + count('vertex') * row;
  const place = (v) => [0, 8, 16].map((at) => bytes.readDoubleLE(end + v * row + at));
  return Array.from({ length: count('face') }, (_, i) => [1, 5, 9].map((at) => place(bytes.readUInt32LE(faces + 13 * i + at))));
}

/** As sorted texts of lattice steps of 0.12 mm, the smallest corner first, their sense kept. */
const texts = (all) => all.map((corners) => {
  const words = corners.map((p) => p.map((v) => Math.round(v * 8192)).join(' ')), first = words.indexOf(words.reduce((a, b) => (a < b ? a : b)));
  return [0, 1, 2].map((k) => words[(first + k) % 3]).join(', ');
}).sort();
const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);
const expected = texts(plyTriangles(`${SCRATCH}/mesh.ply`));
const inWorld = (path) => {
  const glb = readGlb(path), origin = glb.json.asset.extras.origin_m;
  return triangles(glb).map((corners) => corners.map((p) => zUp(p).map((v, i) => v + origin[i])));
};

await test('the validator of Khronos has nothing to say', async () => {
  for (const path of ['mesh.glb', ...parts.map((name) => `mesh_parts/${name}`), ...contents.map((name) => `mesh_tiles/content/${name}`)]) {
    const { issues } = await validator.validateBytes(new Uint8Array(readFileSync(`${SCRATCH}/${path}`)), { maxIssues: 5 });
    check(issues.numErrors === 0 && issues.numWarnings === 0, `${path}: ${JSON.stringify(issues.messages)}`);
  }
});

await test('one GLB file, and those of the tiles together, have the triangles of the city', () => {
  check(expected.length > 5000, `${expected.length} triangles`);
  check(same(texts(inWorld(`${SCRATCH}/mesh.glb`)), expected), 'one file');
  check(parts.length > 2 && same(texts(parts.flatMap((name) => inWorld(`${SCRATCH}/mesh_parts/${name}`))), expected), `${parts.length} files`);
});

const shown = [], levels = new Map();
await test('so have the finest tiles of the tileset, and coarser ones stand for them, all inside of their boxes', () => {
  const origin = tileset.asset.extras.origin_m, named = [];
  walk(tileset.root, (tile, transform, parent) => {
    if (parent) check(tile.geometricError < parent.geometricError, `the error falls below ${parent.geometricError}`);
    if (!tile.content) { check(tile.children.length > 1, 'a tile without a mesh has several below it'); return; }
    named.push(tile.content.uri.replace('content/', ''));
    check(!tile.children === (tile.geometricError === 0), 'the finest are the triangles themselves');
    const [cx, cy, cz, hx, , , , hy, , , , hz] = tile.boundingVolume.box, slack = 1e-4, all = triangles(readGlb(`${SCRATCH}/mesh_tiles/${tile.content.uri}`));
    levels.set(tile.geometricError, (levels.get(tile.geometricError) ?? 0) + all.length);
    for (const corners of all) {
      const here = corners.map(zUp);
      if (!here.every(([x, y, z]) => Math.abs(x - cx) <= hx + slack && Math.abs(y - cy) <= hy + slack && Math.abs(z - cz) <= hz + slack)) check(false, `${tile.content.uri} lies in its box`);
      if (!tile.children) shown.push(here.map((p) => apply(transform, p)));
    }
  });
  check(same(named.sort(), contents.sort()), 'every content is named once');
  check(same(texts(shown.map((corners) => corners.map((p) => p.map((v, i) => v + origin[i])))), expected), 'triangles');
  const errors = [...levels.keys()].sort((a, b) => a - b);
  check(errors.length > 2 && errors.includes(1), `levels: ${errors}`);
});

if (CHROMIUM) {
  const { isBlank, openViewer, size } = await import('./viewer.mjs');
  const viewer = await openViewer('mesh_tiles');
  await test('a viewer shows the mesh where it is', async () => {
    const across = 24, [mx, my] = shown[Math.floor(shown.length / 2)][0], picture = await viewer.show([mx, my, 0], across, 0.001, 'mesh');
    // Where the middle of a pixel is in a triangle, and where an edge is too near to tell.
    const covered = new Uint8Array(size * size), unsure = new Uint8Array(size * size);
    for (const corners of shown) {
      const [a, b, c] = corners.map(([x, y]) => [((x - mx) / across + 0.5) * size, (0.5 - (y - my) / across) * size]);
      const low = [0, 1].map((k) => Math.max(0, Math.floor(Math.min(a[k], b[k], c[k])) - 1)), high = [0, 1].map((k) => Math.min(size - 1, Math.ceil(Math.max(a[k], b[k], c[k]))));
      const sides = [[a, b], [b, c], [c, a]].map(([p, q]) => ({ p, d: [q[0] - p[0], q[1] - p[1]], l: Math.hypot(q[0] - p[0], q[1] - p[1]) || 1 }));
      for (let v = low[1]; v <= high[1]; v++) for (let u = low[0]; u <= high[0]; u++) {
        const offs = sides.map(({ p, d, l }) => (d[0] * (v + 0.5 - p[1]) - d[1] * (u + 0.5 - p[0])) / l), inside = Math.max(Math.min(...offs), Math.min(...offs.map((o) => -o)));
        if (inside > 0.02) covered[u + size * v] = 1; else if (inside > -0.02) unsure[u + size * v] = 1;
      }
    }
    let right = 0, wrong = 0, drawn = 0;
    for (let i = 0; i < size * size; i++) {
      drawn += !isBlank(picture, i);
      if (!covered[i] && unsure[i]) continue;
      if (!!covered[i] === !isBlank(picture, i)) right++; else wrong++;
    }
    check(drawn > 10_000, `${drawn} pixels are drawn`);
    check(wrong <= 0.002 * (right + wrong), `${wrong} pixels are wrong, ${right} are right`);
    check(viewer.complaints.length === 0, viewer.complaints.join('\n'));
  });
  await viewer.close();
}
finish();
