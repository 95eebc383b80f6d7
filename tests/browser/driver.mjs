// `citysplat view` and a real browser that looks at it.
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const { CITYSPLAT, CHROMIUM, MODULES } = process.env;
export const { SCRATCH } = process.env;
const { chromium } = createRequire(`${MODULES}/`)('playwright-core');
export const run = (...words) => execFileSync(CITYSPLAT, ['--json', '-q', ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
export const json = (...words) => JSON.parse(run(...words).toString());

/** `citysplat view` while it runs. */
export async function view(city, ...more) {
  const child = spawn(CITYSPLAT, ['-q', 'view', city, '--trajectory', `${SCRATCH}/drive/trajectory.tum`, ...more],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, XDG_CACHE_HOME: `${SCRATCH}/cache` } });
  const url = await new Promise((resolve, reject) => {
    child.stdout.once('data', (bytes) => resolve(String(bytes).trim()));
    child.once('exit', () => reject(new Error('citysplat view has ended')));
  });
  const end = () => new Promise((resolve) => { child.removeAllListeners('exit'); child.once('exit', resolve); child.kill('SIGINT'); });
  return { url, origin: new URL(url).origin, token: url.split('#t=')[1], end };
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
  return c && c.state.settled && !c.state.needed && c.player.settled() && c.scene.roots.every((r) => r.state === 'ready');
});

/** The colour of a pixel, from the top left, of the picture as it is now. */
export const colourAt = (page, x, y) => page.evaluate(([px, py]) => {
  citysplat.drawFrame();
  const { gl, canvas } = citysplat.renderer, out = new Uint8Array(4);
  gl.readPixels(px, canvas.height - 1 - py, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, out);
  return Array.from(out.slice(0, 3));
}, [x, y]);
export const near = (a, b, by) => a.every((v, i) => Math.abs(v - b[i]) <= by);
