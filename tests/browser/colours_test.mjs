// Where things come from, how old they are, how far from a reference, from above and side by side.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { INPUT_COLOURS } from '../../web/colours.js';
import { check, finish, test } from './check.mjs';
import { SCRATCH, colourAt, json, lasPoints, launch, linear, near, openPage, ramp, run, settle, shaded, size, view } from './driver.mjs';

const city = `${SCRATCH}/coloured`, files = [0, 1].map((i) => `${SCRATCH}/drive/cloud_00${i}.las`), clouds = files.map(lasPoints);
rmSync(city, { recursive: true, force: true });
const build = (...inputs) => json('build', city, ...inputs, '--trajectory', `${SCRATCH}/drive/trajectory.tum`, '--classes', 'synthetic', '--tile-size', '16').generation;
// Some points more in one corner, so that the tiles there are younger than the others.
const patch = `${SCRATCH}/patch.xyz`, corner = clouds[0].reduce((a, b) => (a[0] < b[0] ? a : b));
writeFileSync(patch, Array.from({ length: 900 }, (_, i) => `${corner[0] + (i % 30) / 20} ${corner[1] + Math.floor(i / 30) / 20} ${corner[2]}`).join('\n'));
const before = build(files[0]), both = build(...files), after = json('build', city, patch).generation;
const compared = `${SCRATCH}/distances.ply`, report = json('compare', files[1], '--reference', files[0], '--distances', compared);

const server = await view(city, '--distances', compared), browser = await launch(), { page, complaints } = await openPage(browser);
const get = async (path) => (await fetch(`${server.origin}${path}`, { headers: { 'X-Citysplat-Token': server.token } })).json();
const look = async (hash) => {
  await page.evaluate((h) => { citysplat.state.settled = false; citysplat.state.needed = true; citysplat.readAddress(new URLSearchParams(h)); }, hash);
  await settle(page);
};
/** Picks at pixels of the picture. */
const pickAt = (x, y) => page.evaluate(async ([px, py]) => { await citysplat.pick(px + 0.5, py + 0.5); return citysplat.picking.picked; }, [x, y]);
const distance = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));
const camera = () => page.evaluate(() => citysplat.camera);

await page.goto(`${server.url}`);
await settle(page);
const inputs = await page.evaluate(() => citysplat.city.inputs);
const walk = async (share) => { await page.evaluate((s) => { citysplat.scene.errorPixels = 1; citysplat.renderer.edges = false; citysplat.walkTo(s); citysplat.state.settled = false; }, share); await settle(page); };

await test('a pick names the inputs with points within the radius of its splat', async () => {
  let two = 0, picks = 0;
  for (const share of [0.1, 0.5, 0.9]) {
    await walk(share);
    for (const [x, y] of [[320, 300], [200, 250], [500, 320]]) {
      const { splat } = await pickAt(x, y);
      if (!splat) continue;
      picks++;
      const expected = clouds.map((points, i) => ({ input: files[i], points: points.filter((p) => distance(p, splat.centre) <= splat.radius_m).length }));
      // Coordinates in a city are rounded to the lattice, and equal points of a file are one.
      const told = (file) => splat.points_from.find((p) => p.input.endsWith(file.split('/').pop()))?.points ?? 0;
      for (const e of expected) check(Math.abs(told(e.input) - e.points) <= 1 + 0.02 * e.points, `${told(e.input)} points of ${e.input}, ${e.points} expected`);
      two += splat.points_from.length === 2;
      check((await page.textContent('#picked')).includes('within it'), 'and the page says it');
    }
  }
  check(picks >= 6, `${picks} picks hit something`);
  console.log(`       ${two} of ${picks} picks have points of both inputs`);
});

await test('colours by source and by age are those of the place', async () => {
  const cell = (p) => p.slice(0, 2).map((v) => Math.floor(v / 4)).join();
  const counts = clouds.map((points) => { const m = new Map(); for (const p of points) m.set(cell(p), (m.get(cell(p)) ?? 0) + 1); return m; });
  const made = [...new Set((await get(`/api/city/${after}`)).tiles.map((t) => t[7]))].sort((a, b) => a - b), seen = new Set(), ages = new Set();
  check(made.length === 2 && made[0] === both && made[1] === after, `tiles of generations ${made}`);
  for (const share of [0.02, 0.3, 0.6, 0.98]) {
    await walk(share);
    for (const [x, y] of [[320, 300], [260, 250], [420, 320]]) {
      await page.keyboard.press('1');
      const picked = await pickAt(x, y);
      if (!picked.hit) continue;
      const { centre } = picked.splat, [a, b] = counts.map((m) => m.get(cell(centre)) ?? 0);
      // Not where a disc reaches over the edge of a cell that is another input's, or a tile another generation's.
      if (centre.slice(0, 2).some((v) => Math.abs(v / 4 - Math.round(v / 4)) < 0.05) || Math.abs(a - b) < 5 || distance(centre, corner) < 3) continue;
      const input = inputs.findIndex((path) => path.endsWith(files[a >= b ? 0 : 1].split('/').pop()));
      for (const [key, base] of [['5', linear(INPUT_COLOURS[input])], ['6', ramp(made.indexOf(picked.splat.built_in))]]) {
        await page.keyboard.press(key);
        await page.waitForFunction(() => citysplat.renderer.ground !== null);
        const got = await colourAt(page, x, y), expected = shaded(picked, await camera(), base);
        check(near(got, expected, 6), `${key === '5' ? 'source' : 'age'}: ${got} is ${expected.map(Math.round)}`);
      }
      seen.add(input);
      ages.add(picked.splat.built_in);
    }
  }
  check(seen.size === 2, `both inputs were seen: ${[...seen]}`);
  check(ages.has(both), `generations seen: ${[...ages]}`);
  await page.keyboard.press('6');
  const legend = await page.textContent('#legend');
  check(legend.includes(`generation ${after}`), legend);
});

await test('distances are those of the nearest reference points, and the page shows them', async () => {
  const bytes = readFileSync(compared), head = bytes.indexOf('end_header\n') + 11, count = Number(/element vertex (\d+)/.exec(bytes.subarray(0, head))[1]);
  check(count === clouds[1].length && bytes.length === head + 32 * count, `${count} points`);
  const points = Array.from({ length: count }, (_, i) => { const o = head + 32 * i; return { at: [0, 8, 16].map((a) => bytes.readDoubleLE(o + a)), m: bytes.readFloatLE(o + 24), tenths: bytes.readUInt16LE(o + 28) }; });
  check(Math.abs(points.reduce((sum, p) => sum + p.m, 0) / count - report.c2c_mean_m) < 1e-5, 'their mean is the one of the report');
  for (let i = 0; i < 60; i++) {
    const p = points[Math.floor((i + 0.5) * count / 60)], nearest = Math.sqrt(clouds[0].reduce((least, q) => Math.min(least, (q[0] - p.at[0]) ** 2 + (q[1] - p.at[1]) ** 2 + (q[2] - p.at[2]) ** 2), Infinity));
    check(Math.abs(p.m - nearest) < 2e-5 && Math.abs(p.tenths - Math.min(65535, 1e4 * nearest)) <= 1.2, `${p.m} m is ${nearest} m`);
  }
  const again = (...words) => { run('compare', ...words, '--reference', files[0], '--distances', `${SCRATCH}/again.ply`); return readFileSync(`${SCRATCH}/again.ply`); };
  check(again('--threads', '1', files[0], files[1]).equals(again('--threads', '3', files[1], files[0])), 'the file is the same for other threads and another order');
  const told = await get('/api/distances');
  check(told.points === count && told.p95_m > 0, `${told.points} points, 95 % within ${told.p95_m} m`);
  let right = 0, tried = 0;
  for (let i = 0; i < 12; i++) {
    // From 3 m above: of the points whose discs lie on the ray the highest is seen.
    const p = points[Math.floor((i + 0.5) * count / 12)].at, eye = [p[0], p[1], p[2] + 3];
    if (points.some((q) => q.at[2] > eye[2] && Math.hypot(q.at[0] - p[0], q.at[1] - p[1]) < 0.05)) continue;
    const over = points.filter((q) => Math.hypot(q.at[0] - p[0], q.at[1] - p[1]) < 0.04).sort((a, b) => b.at[2] - a.at[2]);
    await look(`c=distance&b=0&e=1&v=${[...eye, 90, -90, 60].join('_')}`);
    const got = await colourAt(page, size.width / 2, size.height / 2), expected = ramp(over[0].tenths * 1e-4 / told.p95_m).map((v) => 255 * Math.sqrt(v));
    tried++;
    right += near(got, expected, 8);
  }
  check(tried >= 6 && right >= tried - 1, `${right} of ${tried} have the colour of their distance`);
  check((await page.textContent('#legend')).includes('median'), 'the legend tells it');
});

await test('from above everything is to scale', async () => {
  await look('c=class&b=0&e=1');
  await page.focus('#view');
  await page.evaluate(() => citysplat.walkTo(0.3));
  await page.keyboard.press('t');
  await settle(page);
  const wide = await camera();
  check(wide.span > 10 && Math.abs(wide.pitch + Math.PI / 2) < 1e-6, `a parallel projection of ${wide.span} m`);
  for (let i = 0; i < 6; i++) await page.keyboard.press('+');
  await settle(page);
  const c = await camera(), metres = c.span / size.width;
  check(Math.abs(c.span - wide.span * 0.9 ** 6) < 1e-6, 'plus goes nearer');
  let hits = 0;
  for (const [x, y] of [[320, 180], [280, 170], [400, 200], [330, 90]]) {
    const picked = await pickAt(x, y);
    if (!picked.hit) continue;
    hits++;
    const expected = [c.eye[0] + (x + 0.5 - size.width / 2) * metres, c.eye[1] - (y + 0.5 - size.height / 2) * metres];
    check(distance(picked.position.slice(0, 2), expected) < 0.001, `${picked.position} lies at ${expected}`);
    const colour = (await get(`/api/city/${after}`)).classes.find((k) => k.label === picked.label).rgb;
    check(near(await colourAt(page, x, y), shaded(picked, c, linear(colour)), 6), 'and has its colour');
  }
  check(hits >= 2, `${hits} picks hit`);
  const bar = await page.evaluate(() => [document.getElementById('scale').getBoundingClientRect().width, parseFloat(document.getElementById('scale-text').textContent)]);
  check(Math.abs(bar[0] * metres - bar[1]) < 0.02 * bar[1], `the scale bar of ${bar[1]} m is ${bar[0] * metres} m long`);
  await page.waitForFunction(() => location.hash.includes('h='));
  await page.waitForTimeout(300);
  await page.reload();
  await settle(page);
  const again = await camera();
  check(Math.abs(again.span - c.span) < 1e-2 && distance(again.eye, c.eye) < 2e-3, 'the address restores it');
  await page.keyboard.press('t');
  check((await camera()).span === 0, 'and T goes back');
});

await test('two generations stand side by side in one picture', async () => {
  const pose = await page.evaluate(() => { citysplat.walkTo(0.6); const { eye, yaw } = citysplat.camera; return [...eye, yaw * 180 / Math.PI, 0, 75].join('_'); });
  const hash = `v=${pose}&c=class&b=0&e=1`, half = 400;
  await page.setViewportSize({ width: 2 * half + 336, height: size.height });
  const pixels = (p, x, width) => p.evaluate(([at, w]) => {
    citysplat.drawFrame();
    const { gl, canvas } = citysplat.renderer, out = new Uint8Array(4 * w * canvas.height);
    gl.readPixels(at, 0, w, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, out);
    return Array.from(out);
  }, [x, width]);
  await page.waitForTimeout(400);  // the page has written its own address
  await Promise.all([page.waitForEvent('load'), page.evaluate((h) => { location.hash = h; }, `g=${after}&q=${before}&w=side&${hash}`)]);
  await settle(page);
  check((await page.textContent('#left-name')).includes(String(before)) && (await page.textContent('#right-name')).includes(String(after)), 'they are named');
  for (const [generation, x] of [[before, 0], [after, half]]) {
    const alone = await openPage(browser);
    await alone.page.setViewportSize({ width: half + 336, height: size.height });
    await alone.page.goto(`${server.origin}/#t=${server.token}&g=${generation}&${hash}`);
    await settle(alone.page);
    const ours = await pixels(page, x, half), theirs = await pixels(alone.page, 0, half);
    await alone.context.close();
    const same = ours.filter((v, i) => Math.abs(v - theirs[i]) <= 2).length / ours.length;
    check(same > 0.999, `${(100 * same).toFixed(2)} % of the half of generation ${generation} are the picture of that generation`);
    check((await pickAt(x + half / 2, 300)).generation === generation, `a pick there is one of generation ${generation}`);
  }
  await Promise.all([page.waitForEvent('load'), page.keyboard.press('j')]);
  await settle(page);
  check(await page.inputValue('#how') === 'difference' && await page.isHidden('#left-name'), 'J shows the difference');
  check(complaints.length === 0, complaints.join('\n'));
});

await test('a tile tells when and why it was made', async () => {
  const { tiles } = await get(`/api/city/${after}`);
  check(tiles.some((t) => t[16].includes('new points of patch.xyz')) && tiles.some((t) => t[16].includes('new points of cloud_001.las')), `a tile with new points: ${[...new Set(tiles.map((t) => t[16]))]}`);
});

await browser.close();
await server.end();
finish();
