// `citysplat view` and a real browser that looks at it.
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';

export { lasPoints } from './las_points.mjs';

const { CITYSPLAT, CHROMIUM } = process.env;
export const { MODULES, SCRATCH } = process.env;
const { chromium } = createRequire(`${MODULES}/`)('playwright-core');
export const run = (...words) => execFileSync(CITYSPLAT, ['--json', '-q', ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
export const json = (...words) => JSON.parse(run(...words).toString());

/** `citysplat view` while it runs. */
export const view = (city, ...more) => serve(CITYSPLAT, '-q', 'view', city, '--trajectory', `${SCRATCH}/drive/trajectory.tum`, ...more);

/** A program that prints an address and shows something there until it is interrupted. */
export async function serve(program, ...words) {
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, XDG_CACHE_HOME: `${SCRATCH}/cache` } });
  const url = await new Promise((resolve, reject) => {
    child.stdout.once('data', (bytes) => resolve(String(bytes).trim()));
    child.once('exit', () => reject(new Error('citysplat view has ended')));
  });
  const end = () => new Promise((resolve) => { child.removeAllListeners('exit'); child.once('exit', resolve); child.kill('SIGINT'); });
  return { url, origin: new URL(url).origin, token: url.split('#t=')[1], pid: child.pid, end };
}

// The panel is 336 pixels wide: the picture is 640 × 360.
export const size = { width: 640, height: 360 };
export const launch = (...args) => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', ...args] });

/** A page that remembers what it asked for and what went wrong in it. */
export async function openPage(browser) {
  const context = await browser.newContext({ viewport: { width: size.width + 336, height: size.height }, deviceScaleFactor: 1, acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const requested = [], complaints = [];
  page.on('request', (r) => requested.push(r.url()));
  page.on('pageerror', (e) => complaints.push(String(e)));
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(m.text()); });
  return { context, page, requested, complaints };
}

/** Waits until everything that belongs into the picture is in it. */
export const settle = (page) => page.waitForFunction(() => {
  const c = globalThis.citysplat;
  return c && c.state.settled && !c.state.needed && c.player.settled() && c.scenes.every((s) => !s.scene.frame || s.scene.roots.every((r) => r.state === 'ready'));
});

/** The colour of a pixel, from the top left, of the picture as it is now. */
export const colourAt = (page, x, y) => page.evaluate(([px, py]) => {
  citysplat.drawFrame();
  const { gl, canvas } = citysplat.renderer, out = new Uint8Array(4);
  gl.readPixels(px, canvas.height - 1 - py, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, out);
  return Array.from(out.slice(0, 3));
}, [x, y]);
export const near = (a, b, by) => a.every((v, i) => Math.abs(v - b[i]) <= by);

const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
/** The squares of display colours, which light works on. */
export const linear = (rgb) => [1, 3, 5].map((i) => (parseInt(rgb.slice(i, i + 2), 16) / 255) ** 2);
const RAMP = ['#352a6b', '#2f5c8f', '#25848e', '#3dab79', '#9bcb4a', '#fbe33a'].map(linear);
/** The colour of a share of the ramp. */
export function ramp(share) {
  const at = 5 * Math.min(1, Math.max(0, share)), stop = Math.min(4, Math.floor(at));
  return [0, 1, 2].map((i) => RAMP[stop][i] * (1 - at + stop) + RAMP[stop + 1][i] * (at - stop));
}
/**
 * What a pixel on a picked splat must look like, as src/view/shading.cpp has it. `base` is its colour, or a function
 * of its normal that is not lit. A parallel projection has no haze.
 */
export function shaded(picked, camera, base) {
  const parallel = camera.span > 0;
  const d = parallel ? [Math.cos(camera.pitch) * Math.cos(camera.yaw), Math.cos(camera.pitch) * Math.sin(camera.yaw), Math.sin(camera.pitch)] :
    picked.position.map((v, i) => (v - camera.eye[i]) / picked.range_m);
  const n = dot(picked.normal, d) > 0 ? picked.normal.map((v) => -v) : picked.normal;
  const light = 0.30 + 0.25 * (0.5 + 0.5 * n[2]) + 0.25 * Math.abs(dot(n, d)) + 0.35 * Math.max(0, dot(n, [0.48, -0.36, 0.8]));
  const up = Math.min(1, Math.max(0, d[2] * 2 + 0.25)), low = linear('#dfe6ec'), high = linear('#8fb0d0');
  const haze = parallel ? 0 : 1 - Math.exp(-picked.range_m / 900);
  const lit = typeof base === 'function' ? base(n) : base.map((v) => v * light);
  return lit.map((v, i) => 255 * Math.sqrt(v * (1 - haze) + haze * (low[i] * (1 - up) + high[i] * up)));
}
