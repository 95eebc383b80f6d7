// The page: what is shown, and what the panel says and does. Texts of the city are always set as text.

import { pixelsPerMetre } from './math.js';
import { TileMap, tileFrom } from './map.js';
import { UNKNOWN_COLOUR, ageColour, generationsOf, inputColour, legendRows, parseGround } from './colours.js';
import { Generations, ONLY_AFTER, ONLY_BEFORE, openGeneration, sceneOf } from './generations.js';
import { Controls, Mover, degrees, listenToMap } from './moving.js';
import { Picking, byId, count, fillLegend, say } from './panel.js';
import { Playback } from './playback.js';
import { Player, edgesOf } from './player.js';
import { COLOURINGS, Renderer } from './renderer.js';

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
  const { city, diff, other, word } = await openGeneration(fragment, ask);
  const tell = async (/** @type {string} */ path) => (await ask(path)).json();
  const { path: { poses }, scans, distances } = await tell('/api/beside');
  const tiles = /** @type {import('./map.js').Tile[]} */ (city.tiles.map(tileFrom));
  const map = new TileMap(byId('map', HTMLCanvasElement), tiles);
  map.path = poses;
  map.changes = diff?.tiles ?? [];
  const state = { automatic: true, needed: true, lost: false, discs: 0, limited: false, largest: 0, settled: false, frames: 0 };

  // ---------------------------------------------------------------- what is drawn

  const open = (/** @type {any} */ of, /** @type {string} */ opener) => sceneOf(of, opener, ask, renderer);
  const scene = open(city, `/api/city/${city.generation}`);
  /** With what differs from another generation in a colour of its own, or the other city as a whole, and with distances. */
  const scenes = [{ scene, role: 'city', tint: '' }];
  if (other) scenes.push({ scene: open(other, `/api/city/${other.generation}`), role: 'other', tint: '' });
  else if (diff) for (const [side, tint] of /** @type {const} */ ([[diff.before, ONLY_BEFORE], [diff.after, ONLY_AFTER]]))
    scenes.push({ scene: open(side, `/api/diff/${diff.before.generation}/${diff.after.generation}`), role: 'tinted', tint });
  if (distances.points > 0) scenes.push({ scene: open(distances, '/api/distances'), role: 'measured', tint: '' });
  for (const s of scenes) { s.scene.discBudget /= scenes.length; s.scene.byteBudget /= scenes.length; }
  /** Those that are in the picture. */
  const active = () => scenes.filter((s) => s.role !== 'measured' || COLOURINGS[renderer.colouring] === 'distance');

  const mover = new Mover(tiles, poses, moved), { camera } = mover;
  const generations = new Generations(city, diff, other !== null, ask, () => writeAddress());
  const player = new Player(scans, ask, renderer);
  const playback = new Playback(player, scans, playedOn);
  player.onChange = playedOn;
  const picking = new Picking(ask, (picked) => { mover.pivot = picked.position; tellPlace(); remember(); });
  renderer.setClasses(city.classes, city.unlisted.rgb);
  renderer.heights = city.heights_m;
  if (distances.points > 0) renderer.distanceScale = distances.unit_m / Math.max(distances.p95_m, distances.unit_m);

  function moved() {
    for (const s of scenes) s.scene.moved();
    state.needed = true;
    tellChoices();
    remember();
  }
  function playedOn() {
    state.needed = true;
    const pose = playback.riding ? player.pose() : null;
    if (pose) mover.ride(pose);
    playback.tell();
    remember();
  }

  // ---------------------------------------------------------------- what is shown beside the picture

  document.title = `${city.name} – citysplat`;
  say('name', city.name);
  say('facts', `Generation ${city.generation} of ${city.created} (${city.note}): ${count(city.splats)} splats in ` +
    `${count(tiles.length)} tiles of ${city.tile_size_m} m, from ${count(city.points)} points. ` +
    (city.crs ? `Coordinates: ${city.crs}.` : 'No coordinate system is known.'));
  if (other) for (const [id, of] of /** @type {const} */ ([['left-name', other], ['right-name', city]])) {
    byId(id, HTMLElement).hidden = false;
    say(id, `generation ${of.generation}`);
  }
  const distanceOption = byId('colouring', HTMLSelectElement).querySelector('[value=distance]');
  if (distances.points > 0) for (const name of ['hidden', 'disabled']) distanceOption?.removeAttribute(name);

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
    const when = city.history.find((/** @type {any} */ g) => g.generation === tile.builtIn)?.created;
    const area = (tile.box[3] - tile.box[0]) * (tile.box[4] - tile.box[1]);
    say('tile', tile.problem ? `Tile ${tile.name} cannot be shown: ${tile.problem}` :
      `Tile ${tile.name}: ${count(tile.splats)} splats (${count(Math.round(tile.splats / Math.max(area, 1)))} on a square metre) from ` +
      `${count(tile.points)} points (${count(tile.removed)} left out because they moved), made in generation ${tile.builtIn}` +
      `${when ? ` of ${when}` : ''}${tile.why ? `: ${tile.why}` : ''}. Inputs: ${inputs || 'unknown'}.`);
  }

  function tellLegend() {
    fillLegend(byId('legend', HTMLElement), legendRows(COLOURINGS[renderer.colouring], city, { scans: playback.here, diff: other ? null : diff, distances, tiles }));
  }

  function tellPlace() {
    const [x, y, z] = camera.eye, { distance } = mover, pixels = pixelsPerMetre(camera, paneSize(), distance);
    say('where', `${x.toFixed(2)}  ${y.toFixed(2)}  ${z.toFixed(2)} m, looking ${(Math.round(90 - camera.yaw / degrees) % 360 + 360) % 360}° ` +
      `(${(camera.pitch / degrees).toFixed(0)}°)`);
    const wish = 120 / pixels, power = 10 ** Math.floor(Math.log10(wish));
    const metres = [5, 2, 1].map((k) => k * power).find((m) => m <= wish) ?? power;
    byId('scale', HTMLElement).style.width = `${metres * pixels}px`;
    say('scale-text', mover.parallel ? `${metres} m` : `${metres} m at a distance of ${distance.toFixed(0)} m`);
  }

  /** The lists and boxes show what is chosen, whoever chose it. */
  function tellChoices() {
    byId('mode', HTMLSelectElement).value = mover.mode;
    byId('ortho', HTMLInputElement).checked = mover.parallel;
    byId('along', HTMLInputElement).value = String(mover.along);
  }

  // ---------------------------------------------------------------- the address remembers the view

  let remembering = 0;
  function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(writeAddress, 150);
  }
  function writeAddress() {
    const view = new URLSearchParams();
    mover.remember(view);
    view.set('c', COLOURINGS[renderer.colouring]);
    view.set('b', renderer.edges ? '1' : '0');
    view.set('e', String(scene.errorPixels));
    view.set('g', generations.shown);
    if (generations.since) view.set('q', generations.since);
    if (generations.since && generations.side) view.set('w', 'side');
    playback.remember(view);
    history.replaceState(null, '', `#${view}`);
  }
  /** @param {URLSearchParams} from */
  function readAddress(from) {
    const error = Number(from.get('e') ?? 6);
    mover.restore(from);
    setColouring(Math.max(0, COLOURINGS.indexOf(from.get('c') ?? 'class')));
    setEdges(from.get('b') !== '0');
    setError(Number.isFinite(error) ? error : 6);
    playback.restore(from);
  }

  // ---------------------------------------------------------------- choices

  /** What lies on the ground is asked for when it is looked at first. @type {Promise<void> | null} */ let ground = null;
  function loadGround() {
    ground ??= ask(`/api/ground/${city.generation}`).then((r) => r.arrayBuffer()).then((buffer) => {
      renderer.setGround(parseGround(buffer));
      state.needed = true;
    }).catch((e) => { ground = null; say('message', e.message); });
  }
  /** @param {number} index */
  function setColouring(index) {
    const name = COLOURINGS[index] === 'distance' && distances.points === 0 ? 'class' : COLOURINGS[index];
    renderer.colouring = COLOURINGS.indexOf(name);
    byId('colouring', HTMLSelectElement).value = name;
    if (name === 'source' || name === 'age') {
      const made = generationsOf(tiles);
      renderer.setValues(name === 'source' ? city.inputs.map((/** @type {string} */ _, /** @type {number} */ i) => inputColour(i)) : made.map((_, i) => ageColour(i, made.length)), UNKNOWN_COLOUR);
      loadGround();
    }
    tellLegend();
    moved();
  }
  /** @param {string} mode */
  function setMode(mode) { mover.mode = mode; tellChoices(); remember(); }
  /** @param {boolean} on */
  function setEdges(on) { renderer.edges = on; byId('edges', HTMLInputElement).checked = on; state.needed = true; remember(); }
  /** @param {number} pixels */
  function setError(pixels) {
    for (const s of scenes) s.scene.errorPixels = Math.max(1, Math.min(64, pixels || 6));
    byId('error', HTMLInputElement).value = String(scene.errorPixels);
    moved();
  }

  // ---------------------------------------------------------------- picking and pictures

  /** Each half has a picture of its own where two generations are shown. @param {number} [width] @param {number} [height] */
  function paneSize(width = canvas.clientWidth, height = canvas.clientHeight) {
    return { width: other ? Math.floor(width / 2) : width, height };
  }
  /** @param {number} px @param {number} py pixels of the element */
  async function pick(px, py) {
    const size = paneSize(), isLeft = other && px < size.width;
    try {
      const picked = await picking.pick(camera, size, [other && !isLeft ? px - (canvas.clientWidth - size.width) : px, py], isLeft ? other.generation : city.generation);
      if (picked.missing.length && !isLeft) tellMissing((await tell(`/api/progress/${city.generation}`)).missing);
    } catch (e) { say('message', e instanceof Error ? e.message : String(e)); }
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

  // ---------------------------------------------------------------- keys, mouse and panel

  const walk = (/** @type {number} */ by) => mover.walkTo(mover.along + by);
  /** @type {Record<string, () => void>} */
  const keys = {
    ...Object.fromEntries(COLOURINGS.map((_, i) => [i + 1, () => setColouring(i)])),
    f: () => setMode('fly'), o: () => setMode('orbit'), t: () => mover.setParallel(!mover.parallel),
    b: () => setEdges(!renderer.edges), h: () => mover.overview(), x: screenshot,
    g: () => picking.setMeasuring(!picking.measuring), '[': () => walk(-0.01), ']': () => walk(0.01),
    '+': () => mover.zoom(0.1), '=': () => mover.zoom(0.1), '-': () => mover.zoom(-0.1),
    m: () => byId('map', HTMLCanvasElement).focus(), j: () => generations.showBeside(!generations.side),
    p: () => playback.toggle(), ',': () => playback.step(-1), '.': () => playback.step(1), r: () => playback.ride(!playback.riding), v: () => playback.nextCity(),
    Enter: () => { pick(canvas.clientWidth * (other ? 0.75 : 0.5), canvas.clientHeight / 2); },
  };
  const controls = new Controls(canvas, mover, keys, {
    pick,
    // As fast as the city is far away: slow in the street, fast above it.
    speed: () => (mover.parallel ? 0.4 * camera.span : Math.max(4, 0.6 * (camera.eye[2] - renderer.heights[1]))),
  });
  listenToMap(map, mover, () => { tellTile(); map.draw(camera); });
  const input = (/** @type {string} */ id) => byId(id, HTMLInputElement), select = (/** @type {string} */ id) => byId(id, HTMLSelectElement);
  select('colouring').onchange = () => setColouring(COLOURINGS.indexOf(select('colouring').value));
  select('mode').onchange = () => setMode(select('mode').value);
  input('ortho').onchange = () => mover.setParallel(input('ortho').checked);
  input('edges').onchange = () => setEdges(input('edges').checked);
  input('error').onchange = () => setError(Number(input('error').value));
  input('along').oninput = () => mover.walkTo(Number(input('along').value));
  for (const [id, key] of Object.entries({ back: '[', on: ']', home: 'h', shot: 'x', pick: 'Enter', measure: 'g' }))
    byId(id, HTMLButtonElement).onclick = keys[key];
  if (poses.length > 0) for (const id of ['along', 'back', 'on']) document.getElementById(id)?.removeAttribute('disabled');

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
    if (scene.roots.some((r) => r.incomplete)) tell(`/api/progress/${city.generation}`).then((p) => tellMissing(p.missing)).catch(() => {});
  };

  function drawFrame() {
    const ratio = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const size = paneSize(width, height), layers = player.layers(), shownScenes = active();
    const chosen = shownScenes.map((s) => ({ ...s, ...s.scene.select(camera, size) }));
    const partsOf = (/** @type {string} */ role) => chosen.filter((c) => c.role === role).flatMap((c) => c.parts);
    const measured = partsOf('measured');
    const brightness = Math.min(layers.length ? playback.brightness : 1, (diff && !other) || measured.length ? 0.45 : 1);
    const around = { brightness, measured, scans: layers, lines: edgesOf(layers.flatMap((s) => s.boxes), camera.eye) };
    const tinted = chosen.filter((c) => c.role === 'tinted').map(({ parts, tint }) => ({ parts, tint }));
    const right = { region: { x: width - size.width, ...size }, shown: { ...around, tinted, city: brightness === 0 ? [] : partsOf('city') } };
    const left = { region: { x: 0, ...size }, shown: { ...around, tinted: [], city: brightness === 0 ? [] : partsOf('other') } };
    state.discs = renderer.draw(camera, other ? [left, right] : [right]);
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
    controls.tick(seconds);
    if (player.tick(seconds)) state.needed = true;
    if (state.needed && !state.lost) {
      state.needed = false;
      const begin = performance.now();
      drawFrame();
      if (controls.busy) adapt(performance.now() - begin, seconds * 1000);
      map.draw(camera);
      tellPlace();
      const bytes = scenes.reduce((sum, s) => sum + s.scene.bytes, 0), loaded = scenes.reduce((sum, s) => sum + s.scene.loaded, 0);
      say('numbers', `${count(state.discs)} discs${state.limited ? ' (at the budget)' : ''}, ${count(loaded)} cubes loaded, ` +
        `${(bytes / 2 ** 20).toFixed(1)} MiB on the GPU${state.settled ? '' : ', loading …'}`);
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

  const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
  async function watchLevels() {
    for (await pause(3000); !scene.roots.every((r) => r.state === 'ready');) {
      const p = await tell(`/api/progress/${city.generation}`);
      if (p.done < p.total) say('message', `Making levels of detail: ${p.done} of ${p.total} columns of 64 m …`);
      await pause(700);
    }
    if (!scene.trouble) say('message', '');
  }
  /** Tiles that the server finds damaged while it reads them all. */
  async function watchCheck() {
    while (state.discs === 0 && tiles.length > 0) await pause(300);  // the picture first
    for (let wait = 500;; wait = Math.min(2 * wait, 10_000)) {
      await pause(wait);
      const p = await tell(`/api/progress/${city.generation}`).catch(() => null);
      if (p && (p.checked === null || p.checked === undefined)) return;
      if (p) {
        say('checked', `${count(p.checked)} of ${count(tiles.length)} tiles are read and ${p.missing.length ? 'checked' : 'whole'}.`);
        tellMissing(p.missing);
        if (p.checked >= tiles.length) return;
      }
    }
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
    const same = (to.get('g') ?? generations.shown) === generations.shown && (to.get('q') ?? '') === generations.since && (to.get('w') === 'side') === (other !== null);
    if (same) readAddress(to); else location.reload();
  });
  readAddress(fragment);
  say('message', tiles.length === 0 ? 'This generation has no splats.' : 'Loading …');
  writeAddress();  // without the token
  if (word) say('published', word);
  watchLevels().catch((e) => say('message', e.message));
  watchCheck();
  requestAnimationFrame(frame);

  // For tests and the curious: what is shown now.
  Object.assign(globalThis, { citysplat: {
    camera, city, diff, distances, drawFrame, generations, map, mover, pick, picking, playback, player, readAddress, renderer, scene, scenes, screenshot, state,
    walkTo: (/** @type {number} */ share) => mover.walkTo(share) } });
}

start().catch((e) => {
  history.replaceState(null, '', location.pathname);
  say('message', e instanceof Error ? e.message : String(e));
});
