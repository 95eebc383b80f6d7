// A made-up city of more than 10 000 tiles in a real browser, with LARGE_SPLATS=93000 of a billion splats: how much it asks for, keeps and draws. Counts, not milliseconds.
import { readFileSync } from 'node:fs';
import { check, finish, test } from './check.mjs';
import { SCRATCH, launch, openPage, serve, settle } from './driver.mjs';

const { MADE_UP_CITY, LARGE_SPLATS = '1000' } = process.env, ACROSS = 104;
if (!MADE_UP_CITY) {
  console.log('skipped: MADE_UP_CITY does not say which program shows a city of 10 000 tiles');
  process.exit(0);
}
const MB = 2 ** 20, cacheCap = 256;
const server = await serve(MADE_UP_CITY, String(ACROSS), LARGE_SPLATS, `${SCRATCH}/made_up_levels`);
const browser = await launch('--enable-precise-memory-info', '--js-flags=--expose-gc');
const { page, requested, complaints } = await openPage(browser);
const residentMB = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
/** All that the page has on the GPU: cubes, scans, the picture with its depths, and what lies on the ground. */
const gpuMB = () => page.evaluate(() => {
  const { renderer: { canvas, ground }, scenes, player } = citysplat;
  const pictures = canvas.width * canvas.height * (4 + 4 + 4), around = ground ? 2 * ground.index.words.length + 4 * ground.cells.words.length : 0;
  return (scenes.reduce((sum, s) => sum + s.scene.bytes, 0) + player.bytes + pictures + around + 2 * 4 * 65536) / 2 ** 20;
});
const heapMB = () => page.evaluate(() => { globalThis.gc?.(); return performance.memory.usedJSHeapSize / 2 ** 20; });

await test('the first picture needs few requests', async () => {
  await page.goto(server.url);
  await page.waitForFunction(() => globalThis.citysplat?.state.discs > 0, null, { polling: 'raf' });
  // How often the page asks how far the levels are depends on how busy the machine is.
  const first = requested.filter((url) => !url.startsWith('data:') && !url.includes('/api/progress')).length;
  await settle(page);
  const { tiles, splats } = await page.evaluate(() => ({ tiles: citysplat.city.tiles.length, splats: citysplat.city.splats }));
  console.log(`       ${tiles} tiles, ${splats} splats: ${first} requests until the first picture, ${requested.length} until it is whole`);
  check(tiles === ACROSS ** 2 && splats === ACROSS ** 2 * Number(LARGE_SPLATS), 'the city');
  check(first <= 20, `${first} requests`);
});

await test('a flight of 200 steps settles everywhere, within all budgets', async () => {
  // The page draws nothing by itself: frames of a million discs are what takes long without a GPU.
  await page.evaluate(() => { for (const s of citysplat.scenes) Object.assign(s.scene, { discBudget: 1_000_000, onChange: () => {} }); citysplat.state.automatic = false; });
  let most = { discs: 0, gpu: 0, heap: 0, loads: 0 }, drawn = 0;
  for (let i = 0; i < 200; i++) {
    const t = i / 199;
    const step = await page.evaluate(async ([eye, yaw, pitch, draw]) => {
      const { camera, scene, mover, state } = citysplat, size = { width: 1280, height: 720 };
      Object.assign(camera, { eye, yaw, pitch });
      scene.moved();
      const before = scene.loaded;
      let discs = 0, settled = false;
      // Frames without their drawing. Who loads and drops in turn never ends.
      while (!settled && scene.loaded < before + 1000) {
        const chosen = scene.select(camera, size);
        discs = Math.max(discs, chosen.discs);
        settled = chosen.settled;
        if (!settled) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      const loads = scene.loaded - before;
      if (draw) { scene.discBudget = 60_000; citysplat.drawFrame(); scene.discBudget = 1_000_000; }
      return { settled, loads, discs, drawn: draw ? state.discs : 0, pivot: mover.pivot, bytes: scene.bytes };
    }, [[500 + 5000 * t, 3200 + 900 * Math.sin(9 * t), 3000 * (1 - t) ** 3 + 2], 5 * t, -1.2 * (1 - t), i % 20 === 0]);
    if (!step.settled) check(false, `step ${i} does not settle`);
    if (step.discs > 1_000_000) check(false, `${step.discs} discs at step ${i}`);
    if (i % 20 === 0) { check(step.drawn > 0 && step.drawn <= 60_000, `${step.drawn} discs are drawn at step ${i}`); drawn++; }
    most = { discs: Math.max(most.discs, step.discs), loads: Math.max(most.loads, step.loads), gpu: Math.max(most.gpu, await gpuMB()), heap: i % 20 === 19 ? Math.max(most.heap, await heapMB()) : most.heap };
  }
  const loaded = await page.evaluate(() => [citysplat.scene.loaded, citysplat.scene.dropped]);
  console.log(`       ${loaded[0]} cubes loaded, ${loaded[1]} dropped, at most ${most.loads} in one step, ${most.discs} discs; ` +
    `GPU ${most.gpu.toFixed(0)} MB, heap ${most.heap.toFixed(0)} MB, server ${residentMB().toFixed(0)} MB`);
  check(drawn === 10, 'pictures were drawn');
  check(most.gpu <= 512, `${most.gpu.toFixed(0)} MB on the GPU`);
  check(most.heap > 0 && most.heap <= 150, `${most.heap.toFixed(0)} MB of heap`);
  check(residentMB() <= 300 + cacheCap, `the server has ${residentMB().toFixed(0)} MB, of which the cache may have ${cacheCap}`);
  check(await page.evaluate(() => citysplat.scene.trouble) === null, 'every cube was had');
  check(complaints.length === 0, complaints.join('\n'));
});

await browser.close();
await server.end();
finish();
