// The page: what the keys, the mouse and the panel do. Texts of the city are always set as text.

import { add, axes, direction, length, scale, sub } from './math.js';
import { TileMap, tileFrom } from './map.js';
import { Generations, ONLY_AFTER, ONLY_BEFORE, openGeneration, sceneOf } from './generations.js';
import { legendRows } from './legend.js';
import { byId, count, fillLegend, say } from './page.js';
import { Playback } from './playback.js';
import { Player, edgesOf } from './player.js';
import { COLOURINGS, Renderer } from './renderer.js';

/** @typedef {import('./math.js').Vec3} Vec3 */

const degrees = Math.PI / 180;

// The token comes in the fragment of the address, which is never sent, and does not stay there: an address that is
// copied lets nobody in. Reloading the tab keeps it.
const fragment = new URLSearchParams(location.hash.slice(1));
const token = fragment.get('t') ?? sessionStorage.getItem('token') ?? '';
sessionStorage.setItem('token', token);

/** @param {string} path */
async function ask(path) {
  let response;
  try {
    response = await fetch(path, { headers: { 'X-Citysplat-Token': token } });
  } catch {
    throw new Error('The server does not answer. Is citysplat view still running?');
  }
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}

async function start() {
  const canvas = byId('view', HTMLCanvasElement);
  const renderer = new Renderer(canvas);
  say('message', 'Asking for the city …');
  const { city, diff, word } = await openGeneration(fragment, ask);
  const path = (await (await ask('/api/path')).json()).poses;
  const scans = await (await ask('/api/scans')).json();
  const tiles = city.tiles.map(tileFrom);
  const map = new TileMap(byId('map', HTMLCanvasElement), tiles);
  map.path = path;

  map.changes = diff?.tiles ?? [];
  const scene = sceneOf(city, `/api/city/${city.generation}`, ask, renderer);
  /** With what differs from another generation, in colours of their own. */
  const scenes = [{ scene, tint: '' }];
  if (diff) for (const [side, tint] of /** @type {const} */ ([[diff.before, ONLY_BEFORE], [diff.after, ONLY_AFTER]]))
    scenes.push({ scene: sceneOf(side, `/api/diff/${diff.before.generation}/${diff.after.generation}`, ask, renderer), tint });
  for (const s of scenes) { s.scene.discBudget /= scenes.length; s.scene.byteBudget /= scenes.length; }
  const generations = new Generations(city, diff, ask, () => writeAddress());
  const player = new Player(scans, ask, renderer);
  const playback = new Playback(player, scans, () => { state.needed = true; ride(); playback.tell(); remember(); });
  renderer.setClasses(city.classes, city.unlisted.rgb);
  renderer.heights = city.heights_m;

  const box = tiles.reduce((/** @type {number[]} */ b, /** @type {import('./map.js').Tile} */ t) => [
    Math.min(b[0], t.box[0]), Math.min(b[1], t.box[1]), Math.min(b[2], t.box[2]),
    Math.max(b[3], t.box[3]), Math.max(b[4], t.box[4]), Math.max(b[5], t.box[5])],
  [Infinity, Infinity, Infinity, -Infinity, -Infinity, -Infinity]);
  /** @type {import('./math.js').Camera} */
  const camera = { eye: [0, 0, 0], yaw: 0, pitch: 0, fov: 75 * degrees };
  /** @type {Vec3} */ let pivot = [(box[0] + box[3]) / 2, (box[1] + box[4]) / 2, (box[2] + box[5]) / 2];
  const state = {
    mode: 'fly', along: 0, measuring: false, automatic: true, needed: true, lost: false,
    discs: 0, limited: false, largest: 0, settled: false, frames: 0,
    /** @type {Vec3[]} */ ends: [], /** @type {any} */ picked: null, distance: 0,
  };

  // ---------------------------------------------------------------- what is shown beside the picture

  document.title = `${city.name} – citysplat`;
  say('name', city.name);
  say('facts', `Generation ${city.generation} of ${city.created} (${city.note}): ${count(city.splats)} splats in ` +
    `${count(tiles.length)} tiles of ${city.tile_size_m} m, from ${count(city.points)} points. ` +
    (city.crs ? `Coordinates: ${city.crs}.` : 'No coordinate system is known.'));

  /** @param {{tile: string, index: number, reason: string}[]} missing */
  function tellMissing(missing) {
    for (const m of missing) tiles[m.index].problem = m.reason;
    const line = byId('missing', HTMLElement);
    line.hidden = missing.length === 0;
    line.textContent = missing.length === 0 ? '' :
      `${missing.length} of ${tiles.length} tiles cannot be shown: ${missing.slice(0, 5).map((m) => m.tile).join(', ')}`;
    map.draw(camera);
  }
  tellMissing(city.missing);

  function tellTile() {
    const tile = tiles[map.chosen];
    if (!tile) return;
    const inputs = tile.inputs.map((/** @type {number} */ i) => city.inputs[i].split('/').pop()).join(', ');
    say('tile', tile.problem ? `Tile ${tile.name} cannot be shown: ${tile.problem}` :
      `Tile ${tile.name}: ${count(tile.splats)} splats from ${count(tile.points)} points (${count(tile.removed)} left out ` +
      `because they moved), made in generation ${tile.builtIn}, from ${inputs || 'unknown inputs'}.`);
  }

  function tellLegend() {
    fillLegend(byId('legend', HTMLElement), legendRows(COLOURINGS[renderer.colouring], city, { scans: playback.here, diff }));
  }

  function tellPlace() {
    const [x, y, z] = camera.eye, distance = Math.max(1, length(sub(pivot, camera.eye)));
    say('where', `${x.toFixed(2)}  ${y.toFixed(2)}  ${z.toFixed(2)} m, looking ${(Math.round(90 - camera.yaw / degrees) % 360 + 360) % 360}° ` +
      `(${(camera.pitch / degrees).toFixed(0)}°)`);
    const pixels = canvas.clientWidth / 2 / Math.tan(camera.fov / 2) / distance;
    const wish = 120 / pixels, power = 10 ** Math.floor(Math.log10(wish));
    const metres = [5, 2, 1].map((k) => k * power).find((m) => m <= wish) ?? power;
    byId('scale', HTMLElement).style.width = `${metres * pixels}px`;
    say('scale-text', `${metres} m at a distance of ${distance.toFixed(0)} m`);
  }

  // ---------------------------------------------------------------- the address remembers the view

  let remembering = 0;
  function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(writeAddress, 150);
  }
  function writeAddress() {
    const pose = [...camera.eye.map((v) => v.toFixed(3)), ...[camera.yaw, camera.pitch, camera.fov].map((v) => (v / degrees).toFixed(3))];
    const view = new URLSearchParams({
      v: pose.join('_'), c: COLOURINGS[renderer.colouring], m: state.mode, b: renderer.edges ? '1' : '0',
      e: String(scene.errorPixels), p: pivot.map((v) => v.toFixed(3)).join('_'), g: generations.shown, s: state.along.toFixed(5) });
    if (generations.since) view.set('q', generations.since);
    playback.remember(view);
    history.replaceState(null, '', `#${view}`);
  }
  /** @param {string | null} text @param {number} n */
  function numbers(text, n) {
    const v = (text ?? '').split('_').map(Number);
    return v.length === n && v.every(Number.isFinite) && text ? v : null;
  }
  /** @param {URLSearchParams} from */
  function readAddress(from) {
    const v = numbers(from.get('v'), 6), p = numbers(from.get('p'), 3), error = Number(from.get('e') ?? 6);
    if (v) {
      camera.eye = [v[0], v[1], v[2]];
      [camera.yaw, camera.pitch] = [v[3] * degrees, Math.max(-90, Math.min(90, v[4])) * degrees];
      camera.fov = Math.max(5, Math.min(120, v[5])) * degrees;
    } else overview();
    if (p) pivot = [p[0], p[1], p[2]];
    state.along = Math.max(0, Math.min(1, Number(from.get('s') ?? 0) || 0));
    byId('along', HTMLInputElement).value = String(state.along);
    setColouring(Math.max(0, COLOURINGS.indexOf(from.get('c') ?? 'class')));
    setMode(from.get('m') === 'orbit' ? 'orbit' : 'fly');
    setEdges(from.get('b') !== '0');
    setError(Number.isFinite(error) ? error : 6);
    playback.restore(from);
  }

  // ---------------------------------------------------------------- moving

  function moved() {
    for (const s of scenes) s.scene.moved();
    state.needed = true;
    remember();
  }
  function overview() {
    const size = Math.max(box[3] - box[0], box[4] - box[1], 20);
    pivot = [(box[0] + box[3]) / 2, (box[1] + box[4]) / 2, (box[2] + box[5]) / 2];
    camera.yaw = 90 * degrees;
    camera.pitch = -55 * degrees;
    camera.eye = sub(pivot, scale(axes(camera).forward, 0.95 * size));
    moved();
  }
  /** @param {number} dYaw @param {number} dPitch */
  function turn(dYaw, dPitch) {
    const distance = length(sub(pivot, camera.eye));
    camera.yaw += dYaw;
    camera.pitch = Math.max(-89.9 * degrees, Math.min(89.9 * degrees, camera.pitch + dPitch));
    if (state.mode === 'orbit') camera.eye = sub(pivot, scale(axes(camera).forward, distance));
    moved();
  }
  /** @param {number} forward @param {number} left @param {number} up metres */
  function go(forward, left, up) {
    const a = axes(camera);
    const by = add(add(scale(a.forward, forward), scale(a.left, left)), [0, 0, up]);
    camera.eye = add(camera.eye, by);
    if (state.mode === 'orbit' && (left || up)) pivot = add(pivot, add(scale(a.left, left), [0, 0, up]));
    moved();
  }
  /** @param {number} share of the way */
  function walkTo(share) {
    if (path.length === 0) return;
    state.along = Math.max(0, Math.min(1, share));
    byId('along', HTMLInputElement).value = String(state.along);
    const at = state.along * (path.length - 1), i = Math.min(Math.floor(at), path.length - 2), t = at - i;
    const a = path[Math.max(0, i)], b = path[Math.max(0, i) + 1] ?? a;
    camera.eye = [a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t, a[3] + (b[3] - a[3]) * t];
    camera.yaw = a[4];
    camera.pitch = 0;
    pivot = add(camera.eye, scale(axes(camera).forward, 15));
    setMode('fly');
    moved();
  }
  /** @param {number} index */
  function goToTile(index) {
    const tile = tiles[index];
    if (!tile) return;
    pivot = [(tile.box[0] + tile.box[3]) / 2, (tile.box[1] + tile.box[4]) / 2, (tile.box[2] + tile.box[5]) / 2];
    camera.eye = sub(pivot, scale(axes({ ...camera, pitch: -45 * degrees }).forward, 1.2 * Math.max(tile.box[3] - tile.box[0], 20)));
    camera.pitch = -45 * degrees;
    moved();
  }

  /** With the sensor, looking where it is heading. */
  function ride() {
    const pose = playback.riding ? player.pose() : null;
    if (!pose) return;
    camera.eye = [pose[3], pose[7], pose[11]];
    camera.yaw = Math.atan2(pose[4], pose[0]);
    camera.pitch = Math.asin(Math.max(-1, Math.min(1, pose[8])));
    moved();
  }
  player.onChange = () => { state.needed = true; ride(); playback.tell(); remember(); };

  // ---------------------------------------------------------------- choices

  /** @param {number} index */
  function setColouring(index) {
    renderer.colouring = index;
    byId('colouring', HTMLSelectElement).value = COLOURINGS[index];
    tellLegend();
    state.needed = true;
    remember();
  }
  /** @param {string} mode */
  function setMode(mode) { state.mode = mode; byId('mode', HTMLSelectElement).value = mode; remember(); }
  /** @param {boolean} on */
  function setEdges(on) { renderer.edges = on; byId('edges', HTMLInputElement).checked = on; state.needed = true; remember(); }
  /** @param {number} pixels */
  function setError(pixels) {
    for (const s of scenes) s.scene.errorPixels = Math.max(1, Math.min(64, pixels || 6));
    byId('error', HTMLInputElement).value = String(scene.errorPixels);
    moved();
  }
  /** @param {boolean} on */
  function setMeasuring(on) {
    state.measuring = on;
    state.ends = [];
    byId('measure', HTMLButtonElement).setAttribute('aria-pressed', String(on));
    say('distance', on ? 'Pick the first point.' : '');
  }

  // ---------------------------------------------------------------- picking

  /** @param {number} px @param {number} py pixels of the element */
  async function pick(px, py) {
    const size = { width: canvas.clientWidth, height: canvas.clientHeight };
    const d = direction(camera, size, px, py);
    try {
      const picked = await (await ask(`/api/pick?o=${camera.eye.join(',')}&d=${d.join(',')}&g=${city.generation}`)).json();
      state.picked = picked;
      tellPicked(picked);
      if (picked.missing.length) tellMissing((await (await ask(`/api/progress/${city.generation}`)).json()).missing);
    } catch (e) { say('message', e instanceof Error ? e.message : String(e)); }
  }
  /** @param {any} picked */
  function tellPicked(picked) {
    const list = byId('picked', HTMLElement);
    list.replaceChildren();
    const row = (/** @type {string} */ name, /** @type {string} */ value) => {
      const dt = document.createElement('dt'), dd = document.createElement('dd');
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    };
    if (!picked.hit) { row('here', 'nothing within 2 km'); return; }
    pivot = picked.position;
    row('position', picked.position.map((/** @type {number} */ v) => v.toFixed(3)).join('  '));
    row('distance', `${picked.range_m.toFixed(3)} m`);
    row('class', `${picked.class} (${picked.label})`);
    row('intensity', String(picked.intensity));
    row('normal', picked.normal.map((/** @type {number} */ v) => v.toFixed(3)).join('  '));
    const s = picked.splat;
    if (s) {
      row('radius', `${(100 * s.radius_m).toFixed(1)} cm, from ${s.points}${s.points === 255 ? ' or more' : ''} points`);
      row('seen from', s.acquired_range_m === null ? 'unknown' : `${s.acquired_range_m} m`);
      row('tile', `${s.tile}, splat ${s.index}`);
      row('made in', `generation ${s.built_in}; shown: ${picked.generation}`);
      row('inputs', s.inputs.map((/** @type {string} */ i) => i.split('/').pop()).join(', '));
    }
    row('id', picked.splat_id);
    if (state.measuring) {
      if (state.ends.length === 2) state.ends = [];
      state.ends.push(picked.position);
      if (state.ends.length === 1) say('distance', 'Pick the second point.');
      else {
        const d = sub(state.ends[1], state.ends[0]);
        state.distance = length(d);
        say('distance', `${state.distance.toFixed(3)} m apart; ${Math.hypot(d[0], d[1]).toFixed(3)} m across, ${d[2].toFixed(3)} m up`);
      }
    }
    tellPlace();
    remember();
  }

  function screenshot() {
    drawFrame();
    return new Promise((resolve) => canvas.toBlob((blob) => {
      if (blob) {
        const link = document.createElement('a');
        link.href = URL.createObjectURL(blob);
        link.download = `citysplat-generation-${city.generation}.png`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      }
      resolve(blob?.size ?? 0);
    }));
  }

  // ---------------------------------------------------------------- keys and mouse

  const held = new Set();
  /** @type {Record<string, () => void>} */
  const keys = {
    1: () => setColouring(0), 2: () => setColouring(1), 3: () => setColouring(2), 4: () => setColouring(3),
    f: () => setMode('fly'), o: () => setMode('orbit'), b: () => setEdges(!renderer.edges), h: overview, x: screenshot,
    g: () => setMeasuring(!state.measuring), '[': () => walkTo(state.along - 0.01), ']': () => walkTo(state.along + 0.01),
    m: () => byId('map', HTMLCanvasElement).focus(),
    p: () => playback.toggle(), ',': () => playback.step(-1), '.': () => playback.step(1), r: () => playback.ride(!playback.riding), v: () => playback.nextCity(),
    Enter: () => pick(canvas.clientWidth / 2, canvas.clientHeight / 2),
  };
  const motions = new Set(['w', 'a', 's', 'd', 'q', 'e', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']);
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target), typing = ['INPUT', 'SELECT'].includes(target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey || target.id === 'map') return;
    if (event.key === 'Enter' && target.tagName === 'BUTTON') return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (motions.has(key)) { held.add(key); event.preventDefault(); } else keys[key]?.();
  });
  addEventListener('keyup', (event) => held.delete(event.key.length === 1 ? event.key.toLowerCase() : event.key));
  addEventListener('blur', () => held.clear());
  /** @param {number} seconds */
  function moveByKeys(seconds) {
    if (held.size === 0) return;
    const on = (/** @type {string} */ plus, /** @type {string} */ minus) => (held.has(plus) ? 1 : 0) - (held.has(minus) ? 1 : 0);
    // As fast as the city is far away: slow in the street, fast above it.
    const step = seconds * Math.max(4, 0.6 * (camera.eye[2] - renderer.heights[1]));
    go(step * on('w', 's'), step * on('a', 'd'), step * on('e', 'q'));
    turn(seconds * 1.2 * on('ArrowLeft', 'ArrowRight'), seconds * 0.9 * on('ArrowUp', 'ArrowDown'));
  }
  /** @type {{x: number, y: number, far: boolean} | null} */ let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    drag = { x: event.offsetX, y: event.offsetY, far: false };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus();
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag || event.buttons === 0) return;
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    if (!drag.far && Math.hypot(dx, dy) < 4) return;
    const angle = camera.fov / canvas.clientWidth, sign = state.mode === 'orbit' ? -1 : 1;
    turn(sign * dx * angle, sign * dy * angle);
    drag = { x: event.offsetX, y: event.offsetY, far: true };
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && !drag.far) pick(event.offsetX, event.offsetY);
    drag = null;
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const reach = state.mode === 'orbit' ? length(sub(pivot, camera.eye)) : Math.max(5, camera.eye[2] - renderer.heights[0]);
    go(-Math.sign(event.deltaY) * 0.1 * reach, 0, 0);
  }, { passive: false });

  byId('colouring', HTMLSelectElement).onchange = (e) => setColouring(COLOURINGS.indexOf(/** @type {HTMLSelectElement} */ (e.target).value));
  byId('mode', HTMLSelectElement).onchange = (e) => setMode(/** @type {HTMLSelectElement} */ (e.target).value);
  byId('edges', HTMLInputElement).onchange = (e) => setEdges(/** @type {HTMLInputElement} */ (e.target).checked);
  byId('error', HTMLInputElement).onchange = (e) => setError(Number(/** @type {HTMLInputElement} */ (e.target).value));
  byId('along', HTMLInputElement).oninput = (e) => walkTo(Number(/** @type {HTMLInputElement} */ (e.target).value));
  byId('back', HTMLButtonElement).onclick = keys['['];
  byId('on', HTMLButtonElement).onclick = keys[']'];
  byId('home', HTMLButtonElement).onclick = overview;
  byId('shot', HTMLButtonElement).onclick = screenshot;
  byId('pick', HTMLButtonElement).onclick = keys.Enter;
  byId('measure', HTMLButtonElement).onclick = keys.g;
  if (path.length > 0) for (const id of ['along', 'back', 'on']) document.getElementById(id)?.removeAttribute('disabled');

  map.canvas.addEventListener('pointermove', (e) => { map.chosen = map.at(e.offsetX, e.offsetY); tellTile(); map.draw(camera); });
  map.canvas.addEventListener('click', (e) => goToTile(map.at(e.offsetX, e.offsetY)));
  map.canvas.addEventListener('keydown', (event) => {
    const steps = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] });
    if (steps[event.key]) { map.step(...steps[event.key]); event.preventDefault(); } else if (event.key === 'Enter') goToTile(map.chosen);
    tellTile();
    map.draw(camera);
  });

  // ---------------------------------------------------------------- frames

  canvas.addEventListener('webglcontextlost', (event) => {
    event.preventDefault();
    state.lost = true;
    say('message', 'The GPU was taken away; waiting for it …');
  });
  canvas.addEventListener('webglcontextrestored', () => {
    state.lost = false;
    renderer.begin();
    for (const s of scenes) s.scene.forget();
    player.forget();
    say('message', '');
    state.needed = true;
  });
  for (const s of scenes) s.scene.onChange = () => {
    state.needed = true;
    if (s.scene.trouble) say('message', s.scene.trouble);
    else if (!state.lost && scene.roots.every((r) => r.state === 'ready')) say('message', '');
    if ([...scene.roots].some((r) => r.incomplete)) ask(`/api/progress/${city.generation}`).then((r) => r.json()).then((p) => tellMissing(p.missing)).catch(() => {});
  };

  function drawFrame() {
    const ratio = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const chosen = scenes.map((s) => s.scene.select(camera, canvas)), scans = player.layers();
    const brightness = Math.min(scans.length ? playback.brightness : 1, diff ? 0.45 : 1);
    state.discs = renderer.draw(camera, {
      city: scans.length && brightness === 0 ? [] : chosen[0].parts, brightness,
      tinted: chosen.slice(1).map((c, i) => ({ parts: c.parts, tint: scenes[i + 1].tint })),
      scans, lines: edgesOf(scans.flatMap((s) => s.boxes), camera.eye) });
    state.limited = chosen.some((c) => c.limited);
    state.largest = Math.max(...chosen.map((c) => c.largest));
    state.settled = chosen.every((c) => c.settled);
    state.frames++;
  }

  let before = performance.now();
  /** @param {number} now */
  function frame(now) {
    const seconds = Math.min(0.1, (now - before) / 1000);
    before = now;
    moveByKeys(seconds);
    if (player.tick(seconds)) state.needed = true;
    if (state.needed && !state.lost) {
      state.needed = false;
      const begin = performance.now();
      drawFrame();
      if (held.size > 0 || drag) adapt(performance.now() - begin, seconds * 1000);
      map.draw(camera);
      tellPlace();
      say('numbers', `${count(state.discs)} discs${state.limited ? ' (at the budget)' : ''}, ${count(scene.loaded)} cubes loaded, ` +
        `${(scene.bytes / 2 ** 20).toFixed(1)} MiB on the GPU${state.settled ? '' : ', loading …'}`);
    }
    requestAnimationFrame(frame);
  }
  /** Fewer discs when frames are slow, more when they are quick. @param {number} busy @param {number} apart milliseconds */
  function adapt(busy, apart) {
    if (!state.automatic) return;
    for (const s of scenes) {
      if (Math.max(busy, apart) > 60) s.scene.discBudget = Math.max(100_000 / scenes.length, s.scene.discBudget * 0.85);
      else if (apart < 25) s.scene.discBudget = Math.min(6_000_000 / scenes.length, s.scene.discBudget * 1.05);
    }
  }

  async function watchLevels() {
    while (!scene.roots.every((r) => r.state === 'ready')) {
      const p = await (await ask(`/api/progress/${city.generation}`)).json();
      if (p.done < p.total) say('message', `Making levels of detail: ${p.done} of ${p.total} columns of 64 m …`);
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
    if (!scene.trouble) say('message', '');
  }

  // After a failed request: asks now and then until the server is back.
  setInterval(async () => {
    if (!scenes.some((s) => s.scene.trouble)) return;
    try {
      await ask('/api/progress');
      for (const s of scenes) { s.scene.trouble = null; s.scene.retry(); }
      say('message', '');
      state.needed = true;
    } catch { /* still away */ }
  }, 2000);

  new ResizeObserver(() => { state.needed = true; }).observe(canvas);
  setInterval(() => generations.look().catch(() => {}), 10_000);
  addEventListener('hashchange', () => {
    const to = new URLSearchParams(location.hash.slice(1));
    if ((to.get('g') ?? generations.shown) !== generations.shown || (to.get('q') ?? '') !== generations.since) location.reload();
    else readAddress(to);
  });
  readAddress(fragment);
  if (tiles.length === 0) say('message', 'This generation has no splats.');
  else say('message', 'Loading …');
  writeAddress();  // without the token
  if (word) say('published', word);
  watchLevels().catch((e) => say('message', e.message));
  requestAnimationFrame(frame);

  // For tests and the curious: what is shown now.
  Object.assign(globalThis, { citysplat: { camera, city, diff, generations, map, pick, playback, player, renderer, scene, screenshot, state, readAddress, drawFrame, walkTo } });
}

start().catch((e) => {
  history.replaceState(null, '', location.pathname);
  say('message', e instanceof Error ? e.message : String(e));
});
