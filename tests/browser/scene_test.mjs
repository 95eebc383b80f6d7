// The choice of cubes, without a browser: a made-up city of 10 000 tiles and a billion splats.
import { Player } from '../../web/player.js';
import { Scene } from '../../web/scene.js';
import { check, finish, test } from './check.mjs';

const SIDE = 6400, TOP = 10;  // metres; one cube of level 10 is 8192 m wide
const size = { width: 1280, height: 720 };
let requests = 0;

/** About 100 000 splats in each 64 m, a third of them at each further level. */
function discsOf(level) { return Math.round(level > 3 ? 4000 : 100_000 * [1, 0.26, 0.1, 0.04][level]); }

/** A cube as the server would send it, with pieces on the ground. @param {number[]} id */
function cubeMessage([level, x, y, z]) {
  const side = 64 * 2 ** Math.max(0, level - 3), unitShift = Math.max(0, level - 6), unit = 2 ** (unitShift - 13);
  const pieces = [];
  for (let py = 0; py < 4; py++)
    for (let px = 0; px < 4; px++)
      if (x * side + px * side / 4 < SIDE && y * side + py * side / 4 < SIDE)
        pieces.push([px, py, (px & 1) | (py & 1) << 1 | (px >> 1) << 3 | (py >> 1) << 4]);
  pieces.sort((a, b) => a[2] - b[2]);
  const each = Math.floor(discsOf(level) / 16), count = each * pieces.length;
  const words = Math.ceil((16 + 10 * pieces.length) / 16) * 16;
  const buffer = new ArrayBuffer(4 * words + 24 * count), head = new Int32Array(buffer, 0, words);
  const quarter = side / 4 / unit;
  head.set([0x564c5343, 1 | level << 16, unitShift, level > 3 ? childrenOf(level, x, y) : level > 0 ? 1 : 0, x * side, y * side, z * side, count, pieces.length, words]);
  pieces.forEach(([px, py, place], i) => head.set(
    [i * each, each, place, 0, px * quarter, py * quarter, 0, (px + 1) * quarter, (py + 1) * quarter, Math.min(quarter, 15 / unit)], 16 + 10 * i));
  return buffer;
}
function childrenOf(level, x, y) {
  const half = 32 * 2 ** (level - 3);
  let mask = 0;
  for (let o = 0; o < 4; o++) if ((2 * x + (o & 1)) * half < SIDE && (2 * y + (o >> 1)) * half < SIDE) mask |= 1 << o;
  return mask;
}

function newScene() {
  return new Scene({ roots: [[TOP, 0, 0, 0]] }, async (id) => { requests++; return cubeMessage(id); }, { upload: () => ({}), drop: () => {} });
}

/** Frames until nothing more is wanted. */
async function settle(scene, camera) {
  for (let i = 0; i < 3000; i++) {
    const chosen = scene.select(camera, size);
    if (chosen.discs > scene.discBudget) throw new Error(`${chosen.discs} discs are more than the budget`);
    if (chosen.settled) return chosen;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error('the scene does not settle');
}

await test('a flight of 200 steps over 10 000 tiles keeps both budgets and always settles', async () => {
  const scene = newScene();
  let most = 0;
  for (let i = 0; i < 200; i++) {
    const t = i / 199, height = 3000 * (1 - t) ** 3 + 2;
    scene.moved();
    const chosen = await settle(scene, { eye: [500 + 5000 * t, 3200 + 900 * Math.sin(9 * t), height], yaw: 5 * t, pitch: -1.2 * (1 - t), fov: 1.3 });
    most = Math.max(most, scene.bytes);
    check(chosen.parts.length > 0, `something is shown at step ${i}`);
  }
  check(most <= 256 * 2 ** 20, `${(most / 2 ** 20).toFixed(0)} MiB are within 256`);
  console.log(`       ${requests} requests, ${scene.loaded} cubes loaded, ${scene.dropped} dropped, at most ${(most / 2 ** 20).toFixed(0)} MiB`);
});

await test('a long flight leaves nothing behind of the cubes that were dropped', async () => {
  const scene = newScene();
  scene.byteBudget = 24 * 2 ** 20;
  for (let i = 0; i < 40; i++) {
    scene.moved();
    await settle(scene, { eye: [500 + 125 * i, 3200, 30], yaw: 0, pitch: -0.3, fov: 1.3 });
  }
  check(scene.dropped > 20, `${scene.dropped} cubes were dropped on the way`);
  const cubes = [...scene.cubes.values()], here = cubes.filter((c) => c.state === 'ready').length;
  check(cubes.every((c) => c.state === 'ready' || c.pieces.length === 0), 'a cube that is not here keeps no pieces');
  check(cubes.length <= 1 + 8 * here, `${cubes.length} cubes are known: the ${here} that are here, and those right below them`);
  check(cubes.every((c) => !c.parent || scene.cubes.get(c.parent.key) === c.parent), 'the cube above each of them is known');
});

await test('a cube that cannot be had is told, whatever else arrives after it', async () => {
  const scene = newScene(), camera = { eye: [3000, 3000, 400], yaw: 0.3, pitch: -0.8, fov: 1.3 };
  let broken = '', isBroken = true;
  const { load } = scene;
  scene.load = async (id) => {
    if (id[0] === 7) broken ||= id.join();
    if (isBroken && id.join() === broken) throw new Error('this cube is broken');
    return load(id);
  };
  await settle(scene, camera);
  const loaded = scene.loaded;
  scene.moved();
  await settle(scene, { ...camera, eye: [500, 500, 2000], pitch: -1.2 });
  check(broken !== '' && scene.loaded > loaded, 'others arrive after it');
  check(scene.trouble === 'this cube is broken', `"${scene.trouble}" is what the page says`);
  isBroken = false;
  scene.retry();
  scene.moved();
  await settle(scene, camera);
  check(scene.trouble === null, 'nothing is missing any more');
});

await test('where memory is short the picture is coarser, and nothing is loaded and dropped in turn', async () => {
  const scene = newScene(), camera = { eye: [3200, 3200, 30], yaw: 1, pitch: -0.2, fov: 1.3 };
  scene.byteBudget = 12 * 2 ** 20;
  await settle(scene, camera);
  const loaded = scene.loaded, before = requests;
  for (let i = 0; i < 100; i++) { scene.select(camera, size); await new Promise((resolve) => setImmediate(resolve)); }
  check(scene.loaded === loaded && requests === before, 'a camera that stands still asks for nothing more');
  check(scene.bytes <= scene.byteBudget, 'the budget of bytes holds');
  check(scene.roots[0].state === 'ready', 'the coarsest cube stays');
  for (const cube of scene.cubes.values())
    if (cube.state === 'ready' && cube.parent) check(cube.parent.state === 'ready', `${cube.key} stands below a cube that is there`);
  const shown = scene.select(camera, size).parts;
  const levelAt = (near) => shown.filter((p) => (p.error > 0 || p.cube.id[0] === 0)).reduce((best, p) => near ? Math.min(best, p.cube.id[0]) : Math.max(best, p.cube.id[0]), near ? 99 : 0);
  check(levelAt(true) < levelAt(false), 'near things are finer than far ones');
});

await test('the parts that are shown cover what the coarsest cube shows, once', async () => {
  const scene = newScene(), camera = { eye: [3000, 3000, 400], yaw: 0.3, pitch: -0.8, fov: 1.3 };
  // After every answer, and not only in the end.
  for (let i = 0; i < 400; i++) {
    const { parts, settled } = scene.select(camera, size);
    let area = 0;
    const seen = new Set();
    for (const part of parts) for (const piece of part.pieces) {
      const side = 64 * 2 ** Math.max(0, part.cube.id[0] - 3) / 4, key = `${part.cube.key}:${piece.place}`;
      if (seen.has(key)) check(false, `${key} is shown once`);
      seen.add(key);
      area += side * side;
    }
    if (parts.length > 0 && i % 20 === 0) check(area <= 1.02 * 6656 * 6656, 'no place is shown twice');
    if (settled) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  check(scene.loaded > 10, 'cubes were loaded');
});

await test('a scan that was on its way when the GPU was lost is counted once', async () => {
  /** @type {(() => void)[]} */ const answers = [];
  const ask = () => new Promise((resolve) => answers.push(() => resolve({ arrayBuffer: () => cubeMessage([3, 0, 0, 0]) })));
  let textures = 0;
  const player = new Player({ sensors: [{ name: 'roof', frame: 'world', boxes: false, times: [0], poses: [[]] }] }, ask,
    { upload: () => { textures++; return {}; }, drop: () => {} });
  player.forget();
  check(answers.length === 2, 'it is asked for again');
  for (const answer of answers) answer();
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  check(player.layers().length === 1, 'it is shown');
  check(textures === 1 && player.bytes === player.layers()[0].bytes, `${textures} textures of ${player.bytes} bytes in all are one`);
});

finish();
