// A public viewer in a real browser: three and 3d-tiles-renderer show the tileset, and pixels are held against it.
import { readFileSync } from 'node:fs';
import { check, finish, test } from '../browser/check.mjs';
import { apply, readGlb, vertices, walk, zUp } from './glb.mjs';
import { isBlank, openViewer, size } from './viewer.mjs';

const { SCRATCH } = process.env;
/** Points of the tileset by geometric error, in its coordinates. */
const tileset = JSON.parse(readFileSync(`${SCRATCH}/tiles/tileset.json`)), levels = new Map();
walk(tileset.root, (tile, transform) => {
  if (!tile.content) return;
  const points = vertices(readGlb(`${SCRATCH}/tiles/${tile.content.uri}`)).map((v) => ({ at: apply(transform, zUp(v.at)), colour: v.colour }));
  levels.set(tile.geometricError, (levels.get(tile.geometricError) ?? []).concat(points));
});
const splats = levels.get(0), [coarsest, coarse] = [...levels].reduce((a, b) => (a[0] > b[0] ? a : b));

const { close, complaints, show } = await openViewer('tiles');

/** What must be seen from above: the highest point of each pixel, as its shade in sRGB. Pixels near whose edge a point lies are left out. */
function expectedPicture(points, middle, across) {
  const top = new Map(), unsure = new Set(), height = new Map();
  for (const { at: [x, y, z], colour } of points) {
    const u = ((x - middle[0]) / across + 0.5) * size, v = (0.5 - (y - middle[1]) / across) * size;
    if (u < 0 || v < 0 || u >= size || v >= size) continue;
    const key = Math.floor(u) + size * Math.floor(v), linear = colour[0] / 65535;
    for (const du of [-0.02, 0.02]) for (const dv of [-0.02, 0.02]) {
      const other = Math.floor(u + du) + size * Math.floor(v + dv);
      if (other !== key) unsure.add(other).add(key);
    }
    if (!(height.get(key) > z)) {
      height.set(key, z);
      top.set(key, 255 * (linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055));
    }
  }
  return { top, unsure };
}

function compare(shown, points, middle, across) {
  const { top, unsure } = expectedPicture(points, middle, across);
  let right = 0, wrong = 0, drawn = 0;
  for (let i = 0; i < size * size; i++) {
    const [r, g, b] = shown.pixels.slice(4 * i, 4 * i + 3), blank = isBlank(shown, i);
    drawn += !blank;
    if (unsure.has(i)) continue;
    const holds = top.has(i) ? !blank && Math.abs(r - top.get(i)) <= 2 && r === g && g === b : blank;
    if (holds) right++; else wrong++;
  }
  return { right, wrong, drawn };
}

await test('near by, a viewer shows every splat where it is, as bright as it is', async () => {
  const across = 12, middle = splats[Math.floor(splats.length / 2)].at, shown = await show(middle, across, 0.001, 'near');
  const { right, wrong, drawn } = compare(shown, splats, middle, across);
  check(drawn > 1500, `${drawn} pixels are drawn`);
  check(wrong <= 0.002 * (right + wrong), `${wrong} pixels are wrong, ${right} are right`);
});

await test('from afar it shows the coarsest level alone', async () => {
  const [cx, cy, , hx, , , , hy] = tileset.root.boundingVolume.box, across = 2.2 * Math.max(hx, hy), middle = [cx, cy, 0];
  const shown = await show(middle, across, 50, 'far'), { right, wrong, drawn } = compare(shown, coarse, middle, across);
  check(shown.points === coarse.length, `${shown.points} points, the level of ${coarsest} m has ${coarse.length}`);
  check(drawn > 300 && coarse.length < 0.2 * splats.length, `${drawn} pixels of ${coarse.length} points`);
  check(wrong <= 0.002 * (right + wrong), `${wrong} pixels are wrong, ${right} are right`);
});

await test('nothing went wrong in the page', () => check(complaints.length === 0, complaints.join('\n')));
await close();
finish();
