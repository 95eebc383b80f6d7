// Two generations: what differs is what a set difference of their exports says.
import { readFileSync, rmSync } from 'node:fs';
import { check, finish, test } from './check.mjs';
import { SCRATCH, colourAt, json, launch, openPage, run, settle, size, view } from './driver.mjs';

const city = `${SCRATCH}/changing`, clouds = [0, 1].map((i) => `${SCRATCH}/drive/cloud_00${i}.las`);
rmSync(city, { recursive: true, force: true });
const build = (...inputs) => json('build', city, ...inputs, '--trajectory', `${SCRATCH}/drive/trajectory.tum`, '--classes', 'synthetic', '--tile-size', '16').generation;

/** Every splat of the latest generation: all its bytes as a text, and where it is. */
function exported() {
  run('export', city, '--out', `${SCRATCH}/export.ply`);
  const bytes = readFileSync(`${SCRATCH}/export.ply`), head = bytes.indexOf('end_header\n') + 11, text = bytes.subarray(0, head).toString();
  const sizes = { double: 8, float64: 8, float: 4, float32: 4, int: 4, uint: 4, int32: 4, uint32: 4, short: 2, ushort: 2, int16: 2, uint16: 2, uchar: 1, uint8: 1, char: 1, int8: 1 };
  const fields = [...text.matchAll(/property (\w+) (\w+)/g)], row = fields.reduce((sum, f) => sum + sizes[f[1]], 0), count = Number(/element vertex (\d+)/.exec(text)[1]);
  const at = (name) => fields.slice(0, fields.findIndex((f) => f[2] === name)).reduce((sum, f) => sum + sizes[f[1]], 0);
  const places = Object.fromEntries(['x', 'y', 'z', 'nx', 'ny', 'nz'].map((n) => [n, at(n)]));
  const kind = Object.fromEntries(fields.map((f) => [f[2], f[1]]));
  const number = (name, i) => { const o = head + i * row + places[name]; return kind[name].startsWith('double') || kind[name] === 'float64' ? bytes.readDoubleLE(o) : bytes.readFloatLE(o); };
  return Array.from({ length: count }, (_, i) => ({ bytes: bytes.subarray(head + i * row, head + (i + 1) * row).toString('latin1'),
    at: ['x', 'y', 'z'].map((n) => number(n, i)), normal: ['nx', 'ny', 'nz'].map((n) => number(n, i)) }));
}
/** Those of `a` that are not in `b`, counting how often. */
function without(a, b) {
  const left = new Map();
  for (const s of b) left.set(s.bytes, (left.get(s.bytes) ?? 0) + 1);
  return a.filter((s) => { const n = left.get(s.bytes) ?? 0; if (n > 0) left.set(s.bytes, n - 1); return n === 0; });
}
const before = build(clouds[0]), splatsBefore = exported(), after = build(...clouds), splatsAfter = exported();
const onlyBefore = without(splatsBefore, splatsAfter), onlyAfter = without(splatsAfter, splatsBefore);

let server = await view(city);
const browser = await launch(), { page, complaints } = await openPage(browser);

await test('two generations differ by what a set difference of their splats says', async () => {
  await page.goto(server.url);
  await settle(page);
  check(await page.evaluate(() => citysplat.city.generation) === after && await page.textContent('#diff') === '', 'the latest, compared with nothing');
  await Promise.all([page.waitForEvent('load'), page.selectOption('#since', String(before))]);
  await settle(page);
  const diff = await page.evaluate(() => citysplat.diff);
  check(diff.before.generation === before && diff.after.generation === after, 'the two that were chosen');
  check(onlyAfter.length > 100 && diff.only_after === onlyAfter.length, `${diff.only_after} splats only after, ${onlyAfter.length} expected`);
  check(onlyBefore.length > 0 && diff.only_before === onlyBefore.length, `${diff.only_before} splats only before, ${onlyBefore.length} expected`);
  check(onlyBefore.length < splatsBefore.length, 'what is the same cancels');
  const text = (await page.textContent('#diff')).replaceAll('\u2009', '');
  check(text.includes(`${onlyBefore.length} splats`) && text.includes(`${onlyAfter.length} splats`), `the page says it: ${text}`);

  // By tiles. A splat lies in the tile of the point that it grew from: near an edge its centre may lie beyond it.
  const inside = (list, [, ix, iy], margin) => list.filter(({ at: [x, y] }) =>
    x >= 16 * ix - margin && x < 16 * ix + 16 + margin && y >= 16 * iy - margin && y < 16 * iy + 16 + margin).length;
  const has = await Promise.all([before, after].map(async (n) => new Set((await (await fetch(`${server.origin}/api/city/${n}`, { headers: { 'X-Citysplat-Token': server.token } })).json())
    .tiles.map((t) => t.slice(0, 3).join('/')))));
  for (const t of diff.tiles) {
    const kind = !has[0].has(t.tile) ? 'added' : !has[1].has(t.tile) ? 'removed' : 'changed', key = t.tile.split('/').map(Number);
    check(t.kind === kind, `${t.tile} is ${t.kind}, expected ${kind}`);
    for (const [n, list] of [[t.only_before, onlyBefore], [t.only_after, onlyAfter]])
      check(n >= inside(list, key, -0.5) && n <= inside(list, key, 0.5), `${t.tile}: ${n} is between ${inside(list, key, -0.5)} and ${inside(list, key, 0.5)}`);
  }
  for (const side of ['only_before', 'only_after']) check(diff.tiles.reduce((sum, t) => sum + t[side], 0) === diff[side], `the tiles have all of ${side}`);
  check(diff.tiles.some((t) => t.kind === 'changed') && [...has[1]].some((t) => !has[0].has(t)) === diff.tiles.some((t) => t.kind === 'added'), 'changed and added tiles');
});

await test('the finest cubes of a difference have exactly its splats', async () => {
  for (const [side, expected] of [['before', onlyBefore], ['after', onlyAfter]]) {
    const discs = await page.evaluate(async (name) => {
      const { levels_key: key, roots } = citysplat.diff[name];
      const get = async (id) => new Int32Array(await (await fetch(`/api/cube/${key}/${id.join('/')}`, { headers: { 'X-Citysplat-Token': sessionStorage.getItem('token') } })).arrayBuffer());
      const found = [];
      const walk = async ([level, x, y, z]) => {
        const words = await get([level, x, y, z]), count = words[7];
        if (count === 0) return;
        if (level === 0) {
          const first = words[9], column = Math.ceil(count / 16) * 16;
          for (let i = 0; i < count; i++) found.push([0, 1, 2].map((a) => words[4 + a] + (words[first + a * column + i] << 8 >> 8) / 8192));
        } else if (level <= 3) await walk([level - 1, x, y, z]);
        else for (let o = 0; o < 8; o++) if (words[3] >> o & 1) await walk([level - 1, 2 * x + (o & 1), 2 * y + (o >> 1 & 1), 2 * z + (o >> 2)]);
      };
      for (const root of roots) await walk(root);
      return found;
    }, side);
    check(discs.length === expected.length, `${discs.length} discs of ${expected.length}`);
    const key = (p) => p.map((v) => v.toFixed(3)).join(' ');
    const got = discs.map(key).sort(), wanted = expected.map((s) => key(s.at)).sort();
    check(JSON.stringify(got) === JSON.stringify(wanted), `the centres of ${side}`);
  }
});

await test('what is new is blue, what is gone is orange', async () => {
  const cell = (p, by) => p.map((v, i) => Math.floor(v / 0.3) + by[i]).join();
  const steps = [-1, 0, 1].flatMap((x) => [-1, 0, 1].flatMap((y) => [-1, 0, 1].map((z) => [x, y, z])));
  /** Those with none of the others near: the two lie over each other where a surface was seen again. */
  const alone = (list, others) => {
    const taken = new Set(others.map((s) => cell(s.at, [0, 0, 0])));
    return list.filter((s) => steps.every((by) => !taken.has(cell(s.at, by))));
  };
  const list = alone(onlyAfter, splatsBefore);
  check(list.length > 8, `${list.length} splats stand alone`);
  // What is new in one direction is gone in the other.
  for (const hue of ['blue', 'orange']) {
    if (hue === 'orange') {
      await Promise.all([page.waitForEvent('load'), page.evaluate((hash) => { location.hash = hash; }, `g=${before}&q=${after}`)]);
      await settle(page);
    }
    let right = 0;
    for (const s of Array.from({ length: 8 }, (_, i) => list[Math.floor((i + 0.5) * list.length / 8)])) {
      await page.evaluate(({ at, normal }) => {
        const eye = at.map((v, i) => v + 0.4 * normal[i]);
        Object.assign(citysplat.camera, { eye, yaw: Math.atan2(-normal[1], -normal[0]), pitch: Math.asin(Math.max(-1, Math.min(1, -normal[2]))) });
        citysplat.map.draw(citysplat.camera);
        citysplat.readAddress(new URLSearchParams(`v=${[...eye, citysplat.camera.yaw * 180 / Math.PI, citysplat.camera.pitch * 180 / Math.PI, 75].join('_')}&e=1&b=0`));
      }, s);
      await settle(page);
      const [r, g, b] = await colourAt(page, size.width / 2, size.height / 2);
      right += hue === 'blue' ? b > r + 30 && b > g : r > b + 60 && r > g;
    }
    check(right >= 7, `${right} of 8 of ${list.length} are ${hue}`);  // one may hide behind another that is nearer to the eye
  }
  await Promise.all([page.waitForEvent('load'), page.evaluate((hash) => { location.hash = hash; }, `g=${after}&q=${before}`)]);
  await settle(page);
});

await test('publishing and gc while looking: what is shown stays, what is new is told', async () => {
  const published = build('--remove', clouds[0]);
  json('gc', city, '--keep', '1');
  await page.evaluate(() => citysplat.generations.look());
  check((await page.textContent('#published')).includes(`Generation ${published} was published`), 'the page says so');
  check(await page.locator(`#generation option[value="${published}"]`).count() === 1, 'and it can be chosen');
  await page.evaluate(() => { for (const id of ['h']) dispatchEvent(new KeyboardEvent('keydown', { key: id })); });
  await settle(page);
  const again = await page.evaluate(async (path) => (await fetch(path, { headers: { 'X-Citysplat-Token': sessionStorage.getItem('token') } })).json(), `/api/diff/${before}/${after}`);
  check(again.only_after === onlyAfter.length && again.tiles.every((t) => t.problem === ''), 'the difference is still the same');
  check(await page.evaluate(() => citysplat.state.discs > 0 && citysplat.scene.trouble === null), 'and the picture is there');
  await Promise.all([page.waitForEvent('load'), page.selectOption('#generation', String(published))]);
  await settle(page);
  check(await page.evaluate(() => citysplat.city.generation) === published, 'the new one is shown');
  const link = page.url();
  check(complaints.length === 0, complaints.join('\n'));
  await server.end();
  // Nobody holds the earlier ones any more.
  json('gc', city, '--keep', '1');
  server = await view(city);
  const late = await openPage(browser);
  await late.page.goto(`${server.origin}/#t=${server.token}&g=${before}&q=${after}`);
  await settle(late.page);
  check((await late.page.textContent('#published')).includes('not retained'), 'an old address is told that its generation is gone');
  check(await late.page.evaluate(() => citysplat.city.generation) === published && late.complaints.every((c) => c.includes('404')), 'and the latest is shown');
  check(link.includes(`g=${published}`), 'the address names the generation');
});

await server.end();
await browser.close();
finish();
