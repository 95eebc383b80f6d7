// The files themselves: the validator of Khronos, and every point held against the LAS file of the same city.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { check, finish, test } from '../browser/check.mjs';
import { lasPoints } from '../browser/las_points.mjs';
import { apply, readGlb, vertices, walk, zUp } from './glb.mjs';

const { MODULES, SCRATCH } = process.env, validator = createRequire(`${MODULES}/`)('gltf-validator');
const tileset = JSON.parse(readFileSync(`${SCRATCH}/tiles/tileset.json`)), report = JSON.parse(readFileSync(`${SCRATCH}/tiles.json`));
const contents = readdirSync(`${SCRATCH}/tiles/content`), expected = lasPoints(`${SCRATCH}/city.las`);

/** Points of the world as sorted texts of lattice steps of 0.12 mm; LAS rounds to 0.1 mm, so less than half a step. */
const places = (points) => points.map((p) => p.map((v) => Math.round(v * 8192)).join(' ')).sort();
const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

await test('the validator of Khronos has nothing to say', async () => {
  for (const path of [`${SCRATCH}/city.glb`, ...contents.map((name) => `${SCRATCH}/tiles/content/${name}`)]) {
    const { issues } = await validator.validateBytes(new Uint8Array(readFileSync(path)), { maxIssues: 5 });
    check(issues.numErrors === 0 && issues.numWarnings === 0, `${path}: ${JSON.stringify(issues.messages)}`);
  }
});

await test('a GLB file has the points of the city', () => {
  const glb = readGlb(`${SCRATCH}/city.glb`), origin = glb.json.asset.extras.origin_m, all = vertices(glb);
  check(expected.length > 10_000, `${expected.length} splats`);
  check(same(places(all.map((v) => zUp(v.at).map((x, i) => x + origin[i]))), places(expected)), 'places');
  check(all.every((v) => v.mode === 0 && v.colour[3] === 65535 && v.colour[0] === v.colour[1]), 'points are grey and opaque');
  check(new Set(all.map((v) => v.label)).size > 5, 'labels');
});

await test('the tiles of a tileset have its points, inside their boxes', () => {
  const origin = tileset.asset.extras.origin_m, leaves = [], named = [], errors = new Set();
  walk(tileset.root, (tile, transform, parent) => {
    if (parent) check(tile.geometricError < parent.geometricError, `the error falls below ${parent.geometricError}`);
    if (!tile.content) return;
    named.push(tile.content.uri.replace('content/', ''));
    errors.add(tile.geometricError);
    const [cx, cy, cz, hx, , , , hy, , , , hz] = tile.boundingVolume.box;
    const points = vertices(readGlb(`${SCRATCH}/tiles/${tile.content.uri}`)).map((v) => zUp(v.at));
    const slack = 1e-4;
    check(points.every(([x, y, z]) => Math.abs(x - cx) <= hx + slack && Math.abs(y - cy) <= hy + slack && Math.abs(z - cz) <= hz + slack), `${tile.content.uri} lies in its box`);
    const inWorld = points.map((p) => apply(transform, p));
    if (!tile.children) leaves.push(...inWorld.map((p) => p.map((v, i) => v + origin[i])));
  });
  check(errors.has(0) && errors.has(0.25) && errors.has(2), `levels: ${[...errors]}`);
  check(same(named.sort(), contents.sort()), 'every content is named once');
  check(report.contents === contents.length && report.splats === expected.length, 'the report counts them');
  check(same(places(leaves), places(expected)), 'places');
});

await test('a child lies inside its parent', () => {
  const corners = ([cx, cy, cz, hx, , , , hy, , , , hz]) => [-1, 1].flatMap((a) => [-1, 1].flatMap((b) => [-1, 1].map((c) => [cx + a * hx, cy + b * hy, cz + c * hz])));
  walk(tileset.root, (tile) => {
    for (const child of tile.children ?? []) {
      const [cx, cy, cz, hx, , , , hy, , , , hz] = tile.boundingVolume.box;
      for (const corner of corners(child.boundingVolume.box)) {
        const [x, y, z] = child.transform ? apply(child.transform, corner) : corner;
        check(Math.abs(x - cx) <= hx + 1e-6 && Math.abs(y - cy) <= hy + 1e-6 && Math.abs(z - cz) <= hz + 1e-6, 'the box of a child');
      }
    }
  });
});
finish();
