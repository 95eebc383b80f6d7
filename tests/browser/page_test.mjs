// The viewer in a real browser. Every check looks at state or at pixels.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { check, finish, test } from './check.mjs';
import { SCRATCH, colourAt, json, launch, linear, near, openPage, ramp, run, serve, settle, shaded, size, view } from './driver.mjs';

const server = await view(`${SCRATCH}/city`);
const browser = await launch();
const { context, page, requested, complaints } = await openPage(browser);
const settled = (p = page) => settle(p);
/** Runs in the page, then waits for the picture. */
const act = async (body, argument) => {
  await page.evaluate(body, argument);
  await page.evaluate(() => { citysplat.scene.moved(); citysplat.state.settled = false; citysplat.state.needed = true; });
  await settled();
};
const pixelAt = (x, y) => colourAt(page, x, y);
/** How the picture compares with a PNG: share of pixels within 16/255, and how many different reds it has. */
const compare = (png) => page.evaluate(async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const { width, height } = image, g = new OffscreenCanvas(width, height).getContext('2d');
  g.drawImage(image, 0, 0);
  const theirs = g.getImageData(0, 0, width, height).data, ours = new Uint8Array(4 * width * height);
  citysplat.drawFrame();
  const { gl } = citysplat.renderer;
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, ours);
  let same = 0;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const o = 4 * ((height - 1 - y) * width + x), t = 4 * (y * width + x);
      if ([0, 1, 2].every((i) => Math.abs(ours[o + i] - theirs[t + i]) <= 16)) same++;
    }
  return { width, height, share: same / (width * height), reds: new Set(ours.filter((_, i) => i % 4 === 0)).size };
}, readFileSync(png).toString('base64'));

await test('the page tells what status tells', async () => {
  await page.goto(server.url);
  await settled();
  const firstPicture = requested.length, status = json('status', `${SCRATCH}/city`);
  const facts = (await page.textContent('#facts')).replaceAll('\u2009', '');
  for (const key of ['generation', 'created', 'note', 'splats', 'points', 'tile_size_m'])
    check(facts.includes(String(status[key])), `${key} ${status[key]} is in "${facts}"`);
  check(await page.isHidden('#missing'), 'no tile is missing');
  check(firstPicture <= 60, `${firstPicture} requests until everything is there`);
  check(!page.url().includes(server.token), 'the address has no token');
});

await test('a flight from far above to the street never shows a hole', async () => {
  const centre = await page.evaluate(() => { citysplat.walkTo(0.5); return citysplat.camera.eye; });
  // Straight down at the road below the trajectory, so that the middle of the picture is always the road.
  for (const height of [300, 200, 120, 70, 40, 24, 14, 8, 5, 3]) {
    const middle = await page.evaluate(([[x, y, z], h]) => {
      Object.assign(citysplat.camera, { eye: [x, y, z + h], pitch: -Math.PI / 2 + 0.001 });
      citysplat.scene.moved();
      citysplat.drawFrame();  // with what happens to be there
      const { gl, canvas } = citysplat.renderer, out = new Uint8Array(4);
      gl.readPixels(canvas.width / 2, canvas.height / 2, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, out);
      citysplat.state.needed = true;
      return { rgb: Array.from(out.slice(0, 3)), discs: citysplat.state.discs, budget: citysplat.scene.discBudget };
    }, [centre, height]);
    check(middle.rgb[2] < 190, `the road, not the sky, from ${height} m: ${middle.rgb}`);
    check(middle.discs > 0 && middle.discs <= middle.budget, `${middle.discs} discs`);
  }
});

await test('the street is the picture of citysplat render', async () => {
  await act(() => { citysplat.walkTo(0.3); citysplat.renderer.edges = false; citysplat.scene.errorPixels = 1; citysplat.renderer.colouring = 0; });
  const camera = await page.evaluate(() => citysplat.camera);
  const degrees = 180 / Math.PI;
  run('render', `${SCRATCH}/city`, `--pose=${camera.eye.join(',')},${camera.yaw * degrees},${camera.pitch * degrees}`, '--fov', String(camera.fov * degrees),
    '--size', `${size.width}x${size.height}`, '--samples', '1', '--no-edges', '--out', `${SCRATCH}/render.png`);
  const share = 100 * (await compare(`${SCRATCH}/render.png`)).share;
  console.log(`       ${share.toFixed(2)} % of the pixels agree within 16/255`);
  check(share >= 97, 'at least 97 % agree');
});

await test('each colouring gives a known pixel the known colour', async () => {
  const [px, py] = [size.width / 2, 300];
  const picked = await page.evaluate(async ([x, y]) => { await citysplat.pick(x + 0.5, y + 0.5); return citysplat.picking.picked; }, [px, py]);
  check(picked.hit, 'there is something');
  const { camera, city } = await page.evaluate(() => ({ camera: citysplat.camera, city: citysplat.city }));
  const bases = {
    class: linear(city.classes.find((c) => c.label === picked.label).rgb),
    height: ramp((picked.position[2] - city.heights_m[0]) / (city.heights_m[1] - city.heights_m[0])),
    intensity: [0, 0, 0].map(() => picked.intensity / 65535),
    normal: (n) => n.map((v) => (0.5 + 0.5 * v) ** 2),
  };
  for (const [index, [name, base]] of Object.entries(bases).entries()) {
    await page.keyboard.press(String(index + 1));
    await settled();
    check(await page.inputValue('#colouring') === name, `the list says ${name}`);
    check(await page.locator('#legend span').count() > 3, `${name} has a legend`);
    const expected = shaded(picked, camera, base);
    const got = await pixelAt(px, py);
    check(near(got, expected, 5), `${name}: ${got} is ${expected.map(Math.round)}`);
  }
  await page.keyboard.press('1');
});

await test('a pick is the same splat at any level of detail, and two picks have a distance', async () => {
  const pick = () => page.evaluate(async () => { await citysplat.pick(200.5, 250.5); return citysplat.picking.picked; });
  const fine = await pick();
  await act(() => { citysplat.scene.errorPixels = 64; });
  const coarse = await pick();
  check(fine.hit && fine.splat_id === coarse.splat_id && fine.range_m === coarse.range_m, 'the same splat');
  await page.focus('#view');
  await page.keyboard.press('g');
  await page.mouse.click(200, 250);
  await page.waitForFunction(() => citysplat.picking.ends.length === 1);
  await page.mouse.click(320, 300);
  await page.waitForFunction(() => citysplat.picking.ends.length === 2);
  const { ends, distance } = await page.evaluate(() => ({ ends: citysplat.picking.ends, distance: citysplat.picking.distance }));
  check(Math.abs(Math.hypot(...ends[0].map((v, i) => v - ends[1][i])) - distance) < 1e-3, 'the distance of the two');
  check((await page.textContent('#distance')).includes(distance.toFixed(3)), 'and the page says it');
  await page.keyboard.press('g');
});

await test('keys move, and the address restores the view', async () => {
  const before = await page.evaluate(() => [...citysplat.camera.eye]);
  await page.keyboard.down('w');
  await page.waitForFunction((eye) => Math.hypot(...citysplat.camera.eye.map((v, i) => v - eye[i])) > 0.5, before);
  await page.keyboard.up('w');
  await page.keyboard.press('2');
  await page.keyboard.press('o');
  await page.waitForFunction(() => location.hash.includes('c=height') && location.hash.includes('m=orbit'));
  await page.waitForTimeout(400);
  const wanted = await page.evaluate(() => ({ ...citysplat.camera, hash: location.hash }));
  await page.reload();
  await settled();
  const got = await page.evaluate(() => ({ ...citysplat.camera, hash: location.hash, colouring: citysplat.renderer.colouring, mode: citysplat.mover.mode }));
  check(near(got.eye, wanted.eye, 1e-3) && Math.abs(got.yaw - wanted.yaw) < 1e-4 && Math.abs(got.pitch - wanted.pitch) < 1e-4, 'the pose');
  check(got.colouring === 1 && got.mode === 'orbit' && got.hash === wanted.hash, 'the choices');
  check(!got.hash.includes(server.token), 'and no token');
});

await test('budgets hold in every frame, and a still camera comes to rest', async () => {
  const most = await page.evaluate(async () => {
    citysplat.scene.discBudget = 20_000;
    citysplat.scene.byteBudget = 1_000_000;
    citysplat.scene.errorPixels = 2;
    let discs = 0;
    for (let i = 0; i < 40; i++) {
      citysplat.walkTo(i / 39);
      citysplat.drawFrame();
      discs = Math.max(discs, citysplat.state.discs);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return discs;
  });
  check(most > 0 && most <= 20_000, `${most} discs`);
  await settled();
  check(await page.evaluate(() => citysplat.scene.bytes <= 1_000_000), 'bytes');
  await act(() => { Object.assign(citysplat.scene, { discBudget: 1e6, byteBudget: 2 ** 28, errorPixels: 6 }); });
});

await test('a screenshot is a picture', async () => {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#shot')]);
  const { width, height, share, reds } = await compare(await download.path());
  check(width === size.width && height === size.height, 'a PNG of the size of the picture');
  check(share > 0.999 && reds > 20, 'that shows what the page shows, and is not blank');
});

await test('a lost context comes back', async () => {
  await page.evaluate(() => { const e = citysplat.renderer.gl.getExtension('WEBGL_lose_context'); e.loseContext(); setTimeout(() => e.restoreContext(), 200); });
  await page.waitForFunction(() => citysplat.state.lost);
  await page.waitForFunction(() => !citysplat.state.lost);
  await settled();
  check(await page.evaluate(() => citysplat.state.discs) > 0, 'discs are drawn again');
});

await test('the map names tiles, by mouse and by keys', async () => {
  await page.focus('#map');
  await page.keyboard.press('ArrowRight');
  const tiles = await page.evaluate(() => citysplat.city.tiles);
  check((await page.textContent('#tile')).includes(`Tile ${tiles[0].slice(0, 3).join('/')}: ${tiles[0][3].toLocaleString('en').replaceAll(',', '\u2009')} splats`), 'the first tile');
  await page.keyboard.press('Enter');
  await settled();
});

await test('nothing was asked of anybody else, and nothing went wrong', () => {
  for (const url of requested) check(url.startsWith(`${server.origin}/`) || url.startsWith(`blob:${server.origin}/`) || url.startsWith('data:,'), url);
  check(requested.length > 20, 'requests were seen');
  check(complaints.length === 0, complaints.join('\n'));
});

await test('without the token, WebGL 2 or the server the page says so', async () => {
  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(`${server.origin}/`);
  await stranger.waitForFunction(() => document.getElementById('message').textContent.includes('token'));
  const blind = await (await browser.newContext()).newPage();
  await blind.addInitScript(() => { HTMLCanvasElement.prototype.getContext = () => null; });
  await blind.goto(server.url);
  await blind.waitForFunction(() => document.getElementById('message').textContent.includes('WebGL 2'));
  check(!blind.url().includes(server.token), 'the token is gone from the address');
  await server.end();
  await page.click('#pick');
  await page.waitForFunction(() => document.getElementById('message').textContent.includes('does not answer'));
});

await test('another origin and a rebound name get nothing', async () => {
  const again = await view(`${SCRATCH}/city`), port = new URL(again.url).port;
  const rebound = await launch('--host-resolver-rules=MAP evil.test 127.0.0.1');
  const evil = await rebound.newPage();
  check((await evil.goto(`http://evil.test:${port}/`)).status() === 421, 'a rebound name');
  const refused = await evil.evaluate((url) => fetch(url).then(() => 'answered', () => 'refused'), `${again.origin}/`);
  check(refused === 'refused', 'a fetch from there');
  await rebound.close();
  await again.end();
});

await test('texts of a city are text, and a damaged tile is named', async () => {
  const name = '<img src=x onerror=globalThis.broken=1>';
  cpSync(`${SCRATCH}/city`, `${SCRATCH}/${name}`, { recursive: true, preserveTimestamps: true });
  const { tiles } = JSON.parse(await (async () => {
    const s = await view(`${SCRATCH}/${name}`);
    const text = await (await fetch(`${s.origin}/api/city`, { headers: { 'X-Citysplat-Token': s.token } })).text();
    await s.end();
    return text;
  })());
  const objects = execFileSync('grep', ['-rlam1', '^CSPLATS', `${SCRATCH}/${name}/objects`]).toString().trim().split('\n');
  execFileSync('chmod', ['u+w', objects[0]]);
  const bytes = readFileSync(objects[0]);
  bytes[bytes.length - 100] ^= 4;
  writeFileSync(objects[0], bytes);
  // Levels that were kept of the same splats would do without the tile.
  const s = await view(`${SCRATCH}/${name}`, '--levels-size', '0'), p = await context.newPage();
  await p.goto(s.url);
  await settled(p);
  await p.waitForFunction(() => !document.getElementById('missing').hidden);
  check((await p.textContent('#name')) === name, 'the name is shown as it is');
  check(await p.evaluate(() => document.images.length === 0 && globalThis.broken === undefined), 'and is no element');
  const told = await p.textContent('#missing');
  check(tiles.some((t) => told.includes(t.slice(0, 3).join('/'))) && told.startsWith('1 of '), `one tile is named: ${told}`);
  check(await p.evaluate(() => citysplat.state.discs) > 0, 'the others are shown');
  await s.end();
});

await test('kept levels do not hide a damaged tile', async () => {
  const name = `${SCRATCH}/damaged`;
  cpSync(`${SCRATCH}/city`, name, { recursive: true, preserveTimestamps: true });
  json('view', name, '--make-levels', '--levels', `${SCRATCH}/kept`);
  const object = execFileSync('grep', ['-rlam1', '^CSPLATS', `${name}/objects`]).toString().trim().split('\n')[0];
  execFileSync('chmod', ['u+w', object]);
  const bytes = readFileSync(object);
  bytes[bytes.length - 100] ^= 4;
  writeFileSync(object, bytes);
  const s = await view(name, '--levels', `${SCRATCH}/kept`), p = await context.newPage();
  await p.goto(s.url);
  await p.waitForFunction(() => !document.getElementById('missing').hidden);
  check((await p.textContent('#missing')).startsWith('1 of '), 'it is named though nobody came near it');
  await p.waitForFunction(() => /(\d+) of \1 tiles are read/.test(document.getElementById('checked').textContent.replaceAll('\u2009', '')));
  await s.end();
});

await test('a city on a read-only mount is shown', async () => {
  const mount = `${SCRATCH}/mount`;
  mkdirSync(mount, { recursive: true });
  const inside = `mount --bind '${SCRATCH}/city' '${mount}' && mount -o remount,ro,bind '${mount}'`;
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', inside], { stdio: 'ignore' });
  } catch {
    console.log('       skipped: mounts need more rights than there are here');
    return;
  }
  const s = await serve('unshare', '-m', 'sh', '-c', `${inside} && ! touch '${mount}/x' 2>/dev/null && exec '${process.env.CITYSPLAT}' -q view '${mount}' --levels-size 0`);
  const p = await context.newPage();
  await p.goto(s.url);
  await settled(p);
  check(await p.evaluate(() => citysplat.state.discs > 0 && citysplat.scene.trouble === null), 'it has a picture');
  await s.end();
});

await browser.close();
finish();
