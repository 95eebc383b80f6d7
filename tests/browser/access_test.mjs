// The page for everybody: without a mouse, with another sight, without motion.
import { readFileSync } from 'node:fs';
import { INPUT_COLOURS, RAMP, UNKNOWN_COLOUR } from '../../web/colours.js';
import { ONLY_AFTER, ONLY_BEFORE } from '../../web/generations.js';
import { check, finish, test } from './check.mjs';
import { MODULES, SCRATCH, launch, openPage, settle, view } from './driver.mjs';

// Machado, Oliveira and Fernandes 2009, full severity; on linear RGB.
const SIGHTS = {
  all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
};
/** CIE L*, a*, b* of a colour as somebody sees it. */
function lab(rgb, sight) {
  const linear = [1, 3, 5].map((i) => { const v = parseInt(rgb.slice(i, i + 2), 16) / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  const seen = sight.map((row) => Math.min(1, Math.max(0, row.reduce((sum, v, i) => sum + v * linear[i], 0))));
  const xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]].map((row) => row.reduce((sum, v, i) => sum + v * seen[i], 0));
  const f = xyz.map((v, i) => { const t = v / [0.9505, 1, 1.089][i]; return t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116; });
  return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])];
}
const apart = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));

await test('colour maps can be read by the colour-blind', () => {
  for (const [name, sight] of Object.entries(SIGHTS)) {
    const ramp = RAMP.map((rgb) => lab(rgb, sight)[0]);
    check(ramp.every((l, i) => i === 0 || l > ramp[i - 1] + 6), `${name}: the ramp gets brighter: ${ramp.map(Math.round)}`);
    const distinct = [...INPUT_COLOURS, UNKNOWN_COLOUR].map((rgb) => lab(rgb, sight));
    let least = Infinity;
    for (let i = 0; i < distinct.length; i++) for (let j = 0; j < i; j++) least = Math.min(least, apart(distinct[i], distinct[j]));
    check(least > 10, `${name}: inputs differ by ${least.toFixed(1)}`);
    check(apart(lab(ONLY_BEFORE, sight), lab(ONLY_AFTER, sight)) > 40, `${name}: before and after`);
  }
});

const server = await view(`${SCRATCH}/city`), browser = await launch(), { page, complaints } = await openPage(browser);
await page.goto(server.url);
await settle(page);
const axe = readFileSync(`${MODULES}/node_modules/axe-core/axe.min.js`, 'utf8');
/** What axe-core finds wrong. */
async function audit(p, when) {
  await p.evaluate(axe);
  const { violations, passes, incomplete } = await p.evaluate(() => globalThis.axe.run(document));
  for (const v of violations) check(false, `${when}: ${v.id}, ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`);
  check(violations.length === 0 && passes.length > 10, `${when}: ${passes.length} rules pass`);
  console.log(`       axe-core, ${when}: ${passes.length} rules pass, ${violations.length} do not, ${incomplete.length} cannot say (${incomplete.map((i) => i.id)})`);
}

await test('an automatic check finds nothing', async () => {
  await audit(page, 'overview');
  await page.evaluate(() => { citysplat.walkTo(0.3); });
  await settle(page);
  await page.click('#measure');
  await page.click('#pick');
  await page.waitForFunction(() => citysplat.picking.picked);
  await page.evaluate(() => { const m = document.getElementById('missing'); m.hidden = false; m.textContent = '1 of 2 tiles cannot be shown: 0/1/2'; document.getElementById('message').textContent = 'Loading …'; });
  await audit(page, 'with a pick, a warning and a word');
  await page.evaluate(() => { document.getElementById('missing').hidden = true; document.getElementById('message').textContent = ''; });
  await page.click('#measure');
  const narrow = await openPage(browser);
  await narrow.page.setViewportSize({ width: 500, height: 900 });
  await narrow.page.goto(server.url);
  await settle(narrow.page);
  await audit(narrow.page, 'on a narrow screen');
  await narrow.context.close();
});

await test('texts have a contrast of 4.5 : 1', async () => {
  const worst = await page.evaluate(() => {
    const parse = (text) => text.match(/[\d.]+/g).map(Number);
    const luminance = (rgb) => { const [r, g, b] = rgb.map((v) => { const s = v / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    /** What lies behind an element: over the picture anything can, so that its colour is taken over the worst of black and white. */
    const behind = (e) => {
      const layers = [];
      for (let at = e; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c.length < 4 || c[3] > 0) layers.push(c); if (c.length < 4 || c[3] === 1) break; }
      return [[0, 0, 0], [255, 255, 255]].map((far) => layers.reverse().reduce((under, c) => under.map((v, i) => { const alpha = c[3] ?? 1; return c[i] * alpha + v * (1 - alpha); }), far));
    };
    let least = { ratio: Infinity, text: '' };
    for (const e of document.querySelectorAll('body *')) {
      const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()), style = getComputedStyle(e);
      if (!own || e.offsetParent === null || e.tagName === 'OPTION') continue;
      for (const ground of behind(e)) {
        const [a, b] = [luminance(parse(style.color).slice(0, 3)), luminance(ground)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
        if (ratio < least.ratio) least = { ratio, text: `${e.id || e.tagName} "${e.textContent.slice(0, 30)}"` };
      }
    }
    return least;
  });
  console.log(`       least contrast ${worst.ratio.toFixed(1)} : 1, of ${worst.text}`);
  check(worst.ratio >= 4.5, `${worst.ratio} of ${worst.text}`);
});

await test('everything can be reached with Tab, and shows that it has the focus', async () => {
  const wanted = await page.evaluate(() => [...document.querySelectorAll('button, select, input, canvas[tabindex]')].filter((e) => !e.disabled && e.offsetParent !== null).map((e) => e.id));
  const reached = new Map();
  await page.evaluate(() => document.activeElement?.blur());
  for (let i = 0; i < wanted.length + 5; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => { const e = document.activeElement, s = getComputedStyle(e); return { id: e.id, style: s.outlineStyle, width: parseFloat(s.outlineWidth), colour: s.outlineColor }; });
    reached.set(at.id, at);
  }
  for (const id of wanted) {
    const at = reached.get(id);
    check(at !== undefined, `Tab comes to #${id}`);
    if (at) check(at.style === 'solid' && at.width >= 3 && at.colour === 'rgb(255, 213, 74)', `#${id} has a frame: ${at.style} ${at.width} ${at.colour}`);
  }
  console.log(`       ${wanted.length} controls`);
});

await test('every key does what the page says', async () => {
  await page.focus('#view');
  const state = () => page.evaluate(() => ({ eye: [...citysplat.camera.eye], yaw: citysplat.camera.yaw, pitch: citysplat.camera.pitch, span: citysplat.camera.span,
    colouring: citysplat.renderer.colouring, mode: citysplat.mover.mode, edges: citysplat.renderer.edges, along: citysplat.mover.along, measuring: citysplat.picking.measuring, focus: document.activeElement.id }));
  const changes = async (key, of, why) => {
    const was = await state();
    await page.keyboard.press(key, { delay: 120 });
    const is = await state();
    check(JSON.stringify(of(was)) !== JSON.stringify(of(is)), `${key}: ${why}`);
    return is;
  };
  await page.evaluate(() => citysplat.walkTo(0.5));
  for (const key of ['w', 's', 'a', 'd', 'e', 'q']) await changes(key, (s) => s.eye, 'moves');
  for (const key of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']) await changes(key, (s) => [s.yaw, s.pitch], 'turns');
  for (const key of ['+', '-']) await changes(key, (s) => s.eye, 'goes nearer or farther');
  for (const key of [']', '[']) await changes(key, (s) => [s.along, s.eye], 'walks along the trajectory');
  for (const key of ['2', '3', '4', '5', '6', '1']) await changes(key, (s) => s.colouring, 'colours');
  for (const key of ['o', 'f']) await changes(key, (s) => s.mode, 'chooses how to move');
  for (const key of ['b', 'b']) await changes(key, (s) => s.edges, 'darkens edges');
  for (const key of ['t', 't']) await changes(key, (s) => s.span, 'looks from above, and back');
  for (const key of ['g', 'g']) await changes(key, (s) => s.measuring, 'measures');
  await changes('h', (s) => s.eye, 'shows all');
  check((await changes('m', (s) => s.focus, 'goes to the map')).focus === 'map', 'M goes to the map');
  await page.keyboard.press('ArrowRight');
  await changes('Enter', (s) => s.eye, 'goes to the tile');
  check((await changes('Escape', (s) => s.focus, 'leaves the map')).focus === 'view', 'Escape leaves the map');
  await page.evaluate(() => { citysplat.walkTo(0.5); citysplat.picking.picked = null; });
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => citysplat.picking.picked);
  const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('x')]);
  check((await download.suggestedFilename()).endsWith('.png'), 'X takes a picture');
});

await test('who wants no motion sees none', async () => {
  const calm = await browser.newContext({ reducedMotion: 'reduce', viewport: { width: 700, height: 400 } }), p = await calm.newPage();
  await p.goto(server.url);
  await settle(p);
  check(await p.evaluate(() => document.getAnimations().length === 0), 'nothing is animated');
  await p.focus('#view');
  const eye = () => p.evaluate(() => [...citysplat.camera.eye]);
  const begin = await eye();
  await p.keyboard.down('w');
  const step = await eye(), frames = await p.evaluate(() => new Promise((resolve) => { let n = 0; const next = () => (++n < 20 ? requestAnimationFrame(next) : resolve(n)); next(); }));
  check(JSON.stringify(step) !== JSON.stringify(begin), 'a key is one step');
  check(frames === 20 && JSON.stringify(await eye()) === JSON.stringify(step), 'and not a flight');
  await p.keyboard.up('w');
  check(complaints.length === 0, complaints.join('\n'));
  await calm.close();
});

await browser.close();
await server.end();
finish();
