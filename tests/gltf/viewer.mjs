// A public viewer in a real browser: three and 3d-tiles-renderer show a tileset of the scratch directory.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join, normalize } from 'node:path';

const { CHROMIUM, DRIVERS, MODULES, SCRATCH, PICTURES } = process.env, { chromium } = createRequire(`${DRIVERS}/`)('playwright-core');
const here = new URL('.', import.meta.url).pathname;
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json', '.glb': 'model/gltf-binary' };

/** Pixels of a side of the picture. */
export const size = 256;

/** Opens the tileset in the directory `name`. */
export async function openViewer(name) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://here').pathname);
    const file = path.startsWith('/modules/') ? join(MODULES, 'node_modules', path.slice(9)) : path.startsWith('/tiles/') ? join(SCRATCH, name, path.slice(7)) : join(here, path);
    try {
      const body = readFileSync(file);
      response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(body);
    } catch { response.writeHead(404).end(); }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'] });
  const page = await browser.newPage({ viewport: { width: size, height: size }, deviceScaleFactor: 1 }), complaints = [];
  page.on('pageerror', (e) => complaints.push(String(e)));
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(m.text()); });
  page.setDefaultTimeout(120_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/viewer.html`);
  await page.waitForFunction(() => globalThis.show);
  return {
    complaints,
    /** The picture from above, of `across` metres around a place; `error`: pixels that the viewer may be wrong by. */
    show: async (middle, across, error, picture) => {
      const shown = await page.evaluate((words) => globalThis.show(...words), [middle, across, error]);
      if (PICTURES) writeFileSync(`${PICTURES}/${picture}.png`, await page.screenshot());
      return shown;
    },
    close: async () => { await browser.close(); server.close(); },
  };
}

/** Is pixel i of a picture the background? */
export const isBlank = ({ pixels }, i) => pixels[4 * i] === 255 && pixels[4 * i + 1] === 0 && pixels[4 * i + 2] === 255;
