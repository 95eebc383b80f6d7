// Scans that are played: what is drawn is what the files and poses of the run say.
import { readFileSync, writeFileSync } from 'node:fs';
import { check, finish, test } from './check.mjs';
import { SCRATCH, colourAt, launch, near, openPage, run, settle, size, view } from './driver.mjs';

// Two sensors on one car, among things that move: one writes KITTI files in its own frame, one PLY in the world.
const things = readFileSync(`${SCRATCH}/drive/actors/scenario.toml`, 'utf8');
const sensors = `[[sensor]]
name = "front"
sensor = "vlp-16"
rate_hz = 2
format = "kitti"
[[sensor]]
name = "roof"
sensor = "vlp-16"
rate_hz = 1
mount_m = [0.0, 0.0, 0.5]
mount_deg = [30.0, 0.0, 0.0]
format = "ply"
`;
writeFileSync(`${SCRATCH}/drive/actors/play.toml`, things.replace(/\[\[sensor\]\][^]*?(?=\[\[object\]\])/, sensors));
run('simulate', `${SCRATCH}/city`, '--scenario', `${SCRATCH}/drive/actors/play.toml`, '--out', `${SCRATCH}/scans`, '--overwrite');

const lines = (path) => readFileSync(path, 'utf8').trim().split('\n');
const name = (number) => String(number).padStart(6, '0');
const poses = (sensor) => lines(`${SCRATCH}/scans/${sensor}/poses.txt`).map((l) => l.split(' ').map(Number));
const times = (sensor) => lines(`${SCRATCH}/scans/${sensor}/times.txt`).map(Number);

/** x, y, z in the world, label and intensity of every return, read without the program. */
function kitti(number) {
  const m = poses('front')[number], bytes = readFileSync(`${SCRATCH}/scans/front/velodyne/${name(number)}.bin`);
  const labels = readFileSync(`${SCRATCH}/scans/front/labels/${name(number)}.label`);
  return Array.from({ length: bytes.length / 16 }, (_, i) => {
    const [x, y, z, intensity] = [0, 4, 8, 12].map((at) => bytes.readFloatLE(16 * i + at));
    return { at: [0, 1, 2].map((r) => m[4 * r] * x + m[4 * r + 1] * y + m[4 * r + 2] * z + m[4 * r + 3]),
      label: labels.readUInt32LE(4 * i) & 0xffff, intensity: Math.round(65535 * intensity) };
  });
}
function ply(number) {
  const bytes = readFileSync(`${SCRATCH}/scans/roof/scans/${name(number)}.ply`), head = bytes.indexOf('end_header\n') + 11;
  const text = bytes.subarray(0, head).toString(), count = Number(/element vertex (\d+)/.exec(text)[1]);
  const read = { double: ['readDoubleLE', 8], float: ['readFloatLE', 4], uint: ['readUInt32LE', 4], ushort: ['readUInt16LE', 2], uchar: ['readUInt8', 1],
    float64: ['readDoubleLE', 8], float32: ['readFloatLE', 4], uint32: ['readUInt32LE', 4], uint16: ['readUInt16LE', 2], uint8: ['readUInt8', 1] };
  const fields = [...text.matchAll(/property (\w+) (\w+)/g)].map((m) => ({ kind: read[m[1]], name: m[2] }));
  let at = head;
  return Array.from({ length: count }, () => {
    const row = {};
    for (const f of fields) { row[f.name] = bytes[f.kind[0]](at); at += f.kind[1]; }
    return { at: [row.x, row.y, row.z], label: row.label, intensity: row.intensity };
  });
}
/** The columns that the page was sent, as they lie on the GPU. */
const played = (page, key) => page.evaluate(async (path) => {
  const answer = await fetch(path, { headers: { 'X-Citysplat-Token': sessionStorage.getItem('token') } });
  return Array.from(new Uint32Array(await answer.arrayBuffer()));
}, `/api/scan/${key}`);
function points(words) {
  const signed = Int32Array.from(words), count = words[7], first = words[9], unit = 2 ** (words[2] - 13);
  const wide = (column) => first + column * Math.ceil(count / 16) * 16;
  const half = (column, i) => { const at = 2 * (wide(4) + column * Math.ceil(count / 32) * 16) + i; return words[at >> 1] >>> (at & 1) * 16 & 0xffff; };
  return Array.from({ length: count }, (_, i) => ({
    at: [0, 1, 2].map((a) => signed[4 + a] + unit * (signed[wide(a) + i] << 8 >> 8)), label: half(1, i), intensity: half(2, i) }));
}

const server = await view(`${SCRATCH}/city`, '--scans', `${SCRATCH}/scans`), browser = await launch();
const { page, requested, complaints } = await openPage(browser);

await test('what is played is what the files and poses say, of each sensor', async () => {
  await page.goto(server.url);
  await settle(page);
  const told = await page.evaluate(() => citysplat.player.sensors);
  check(told.map((s) => s.name).join() === 'front,roof', 'two sensors');
  check(told[0].frame === 'sensor' && told[1].frame === 'world', 'in the frames in which they were written');
  for (const [i, sensor] of ['front', 'roof'].entries()) {
    check(JSON.stringify(told[i].poses) === JSON.stringify(poses(sensor)), `poses of ${sensor}`);
    check(JSON.stringify(told[i].times) === JSON.stringify(times(sensor)), `times of ${sensor}`);
    for (const number of [0, times(sensor).length - 1]) {
      const expected = i === 0 ? kitti(number) : ply(number), got = points(await played(page, `${i}/${number}`));
      check(expected.length > 1000 && got.length === expected.length, `${got.length} returns of ${expected.length}`);
      const wrong = expected.filter((e, k) => !near(e.at, got[k].at, 1e-4) || e.label !== got[k].label || Math.abs(e.intensity - got[k].intensity) > 1);
      check(wrong.length === 0, `${wrong.length} of scan ${number} of ${sensor} differ`);
    }
  }
  check((await page.textContent('#scans-of')).includes('front') && await page.isVisible('#player'), 'and the panel is there');
});

await test('the slider, the keys and the list choose scans; the last one that began is shown', async () => {
  const all = [...new Set([...times('front'), ...times('roof')])].sort((a, b) => a - b);
  check(await page.getAttribute('#time', 'max') === String(all.length - 1), 'a place on the slider for each beginning');
  await page.focus('#view');
  for (const [key, at] of [['.', 1], ['.', 2], [',', 1], ['.', 2], ['.', 3]]) {
    await page.keyboard.press(key);
    await settle(page);
    const { shown, expected } = await page.evaluate(() => ({ shown: citysplat.player.layers().map((s) => [s.sensor, s.number, s.count]), expected: citysplat.player.at }));
    const number = (sensor) => times(sensor).filter((t) => t <= all[at]).length - 1;
    check(expected === at && JSON.stringify(shown.map((s) => s.slice(0, 2))) === JSON.stringify([[0, number('front')], [1, number('roof')]]), `${JSON.stringify(shown)} at ${at}`);
    check(shown[0][2] === kitti(number('front')).length, 'with all its returns');
  }
  await page.selectOption('#sensor', '1');
  await settle(page);
  check(await page.evaluate(() => citysplat.player.times.length) === times('roof').length, 'one sensor alone');
  check((await page.evaluate(() => citysplat.player.layers().map((s) => s.sensor))).join() === '1', 'is shown alone');
  await page.fill('#time', String(times('roof').length - 1));
  await settle(page);
  check((await page.textContent('#scan')).includes(`roof ${times('roof').length - 1}, `), 'the panel names the scan');
});

await test('playing goes through all scans in their order and stops at the last', async () => {
  await page.selectOption('#sensor', '0');
  await page.fill('#time', '0');
  await settle(page);
  await page.selectOption('#speed', '10');
  await page.evaluate(() => {
    globalThis.seen = [];
    const tell = citysplat.player.onChange;
    citysplat.player.onChange = () => { seen.push(citysplat.player.at); tell(); };
  });
  await page.click('#play');
  await page.waitForFunction((last) => !citysplat.player.playing && citysplat.player.at === last, times('front').length - 1);
  await settle(page);
  const order = await page.evaluate(() => seen);
  check(order.every((at, i) => i === 0 || at >= order[i - 1]), 'never back');
  check((await page.textContent('#play')).startsWith('play'), 'and it has stopped');
});

await test('a return has the colour of its class, and the rider is where the sensor was', async () => {
  await page.fill('#time', '2');
  await page.selectOption('#behind', 'hidden');
  await page.check('#ride');
  await settle(page);
  const m = poses('front')[2], camera = await page.evaluate(() => citysplat.camera);
  check(near(camera.eye, [m[3], m[7], m[11]], 1e-6) && Math.abs(camera.yaw - Math.atan2(m[4], m[0])) < 1e-9, 'the pose');
  // Look straight at one return from a metre before it, with nothing else of the city in the way.
  const returns = kitti(2), city = await page.evaluate(() => citysplat.city);
  const [target, eye] = await page.evaluate((list) => {
    const at = list.find((p) => Math.hypot(p.at[0] - citysplat.camera.eye[0], p.at[1] - citysplat.camera.eye[1], p.at[2] - citysplat.camera.eye[2]) > 5);
    const from = citysplat.camera.eye, d = at.at.map((v, i) => v - from[i]), far = Math.hypot(...d);
    citysplat.playback.ride(false);
    Object.assign(citysplat.camera, { eye: at.at.map((v, i) => v - d[i] / far), yaw: Math.atan2(d[1], d[0]), pitch: Math.asin(d[2] / far) });
    citysplat.renderer.edges = false;
    citysplat.scene.moved();
    citysplat.state.needed = true;
    return [at, from];
  }, returns);
  const middle = () => colourAt(page, size.width / 2, size.height / 2);
  const hex = (rgb) => [1, 3, 5].map((i) => parseInt(rgb.slice(i, i + 2), 16));
  const expected = { 1: hex((city.classes.find((c) => c.label === target.label) ?? city.unlisted).rgb), 3: [0, 0, 0].map(() => 255 * Math.sqrt(target.intensity / 65535)),
    4: target.at.map((v, i) => 255 * (0.5 + 0.5 * (eye[i] - v) / Math.hypot(...target.at.map((w, k) => w - eye[k])))) };
  for (const [key, colour] of Object.entries(expected)) {
    await page.focus('#view');
    await page.keyboard.press(key);
    await settle(page);
    const got = await middle();
    check(near(got, colour, 6), `key ${key}: ${got} is ${colour.map(Math.round)}`);
  }
  await page.keyboard.press('1');
});

await test('boxes are those of the run, and their edges are drawn', async () => {
  const rows = (number) => lines(`${SCRATCH}/scans/front/boxes/${name(number)}.csv`).slice(1).map((l) => l.split(','));
  const number = times('front').findIndex((_, i) => rows(i).length > 0);
  check(number >= 0, 'a scan that saw something move');
  await page.fill('#time', String(number));
  await settle(page);
  const boxes = await page.evaluate(() => citysplat.player.layers()[0].boxes), expected = rows(number);
  check(boxes.length === expected.length, `${boxes.length} boxes of ${expected.length}`);
  for (const row of expected) {
    const [time, , , , kind, x, y, z, yaw, , , length, width, height] = row.map((v) => (Number.isNaN(Number(v)) ? v : Number(v)));
    check(boxes.some((b) => b.class === kind && near(b.bottom, [x, y, z], 1e-5) && near(b.size, [length, width, height], 1e-5) &&
      Math.abs(Math.atan2(b.forward[1], b.forward[0]) - yaw) < 1e-6 && Math.abs(b.time - time) < 1e-6), `box ${row[1]}`);
  }
  // From the side of the first box, close enough that nothing stands between: the upper edge is in the middle.
  await page.evaluate((b) => {
    const up = b.bottom.map((v, i) => v + b.size[2] * b.up[i] + b.size[0] / 2 * b.forward[i]);
    const eye = up.map((v, i) => v + 1.5 * b.forward[i]), d = up.map((v, i) => v - eye[i]);
    Object.assign(citysplat.camera, { eye, yaw: Math.atan2(d[1], d[0]), pitch: Math.asin(d[2] / Math.hypot(...d)) });
    citysplat.scene.moved();
    citysplat.state.needed = true;
  }, boxes[0]);
  await settle(page);
  let found = false;
  for (let dy = -2; dy <= 2; dy++) found ||= near(await colourAt(page, size.width / 2 + 40, size.height / 2 + dy), [255, 214, 74], 12);
  check(found, 'a yellow edge is in the middle of the picture');
});

await test('the address restores time, sensor and city; a lost context loads the scans again', async () => {
  await page.selectOption('#behind', 'shown');
  await page.waitForFunction(() => location.hash.includes('i=shown'));
  await page.waitForTimeout(300);
  const wanted = await page.evaluate(() => ({ at: citysplat.player.at, only: citysplat.player.only, hash: location.hash }));
  await page.reload();
  await settle(page);
  const got = await page.evaluate(() => ({ at: citysplat.player.at, only: citysplat.player.only, hash: location.hash }));
  check(JSON.stringify(got) === JSON.stringify(wanted), `${JSON.stringify(got)} is ${JSON.stringify(wanted)}`);
  await page.evaluate(() => { const e = citysplat.renderer.gl.getExtension('WEBGL_lose_context'); e.loseContext(); setTimeout(() => e.restoreContext(), 100); });
  await page.waitForFunction(() => citysplat.state.lost);
  await page.waitForFunction(() => !citysplat.state.lost && citysplat.player.layers().length === 1);
  await settle(page);
});

await test('only numbers of scans that exist are answered, and nothing went wrong', async () => {
  for (const path of ['0/999999', '2/0', '-1/0', '0', '0/0/0', '0/0x1', '0/1e1', '../run.toml', 'front/000000.bin', '0/%30', '0/4294967296', '0/']) {
    const answer = await fetch(`${server.origin}/api/scan/${path}`, { headers: { 'X-Citysplat-Token': server.token } });
    check(answer.status === 404 || answer.status === 400, `${path}: ${answer.status}`);
  }
  check((await fetch(`${server.origin}/api/scan/0/0`)).status === 401 && (await fetch(`${server.origin}/api/scans`)).status === 401, 'nor without the token');
  for (const url of requested) check(url.startsWith(`${server.origin}/`) || url.startsWith('data:,'), url);
  check(complaints.length === 0, complaints.join('\n'));
});

await server.end();
await browser.close();
finish();
