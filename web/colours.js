// What the colours mean, and what lies on the ground where: which input has most points there, and in which
// generation the tile was made. A splat does not know either; the cell of 4 m that its centre lies in does
// (docs/formats.md).

import { ONLY_AFTER, ONLY_BEFORE } from './generations.js';

const MAGIC = 0x52475343;
const ACROSS = 16, SQUARE = 64;
/** Squares in a row of the texture with the cells. */
const SQUARES_ACROSS = 128;
/** More would not fit a texture that every device has. */
const MOST_SQUARES = SQUARES_ACROSS * 256, MOST_ACROSS = 2048;

/** Okabe and Ito's colours, apart for every kind of colour blindness; after the last they begin again. */
export const INPUT_COLOURS = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#0072b2', '#d55e00', '#cc79a7', '#f2f2f2'];
export const UNKNOWN_COLOUR = '#4d4d4d';

/**
 * @typedef {object} Ground
 * @property {[number, number]} corner metres
 * @property {{width: number, height: number, words: Uint16Array}} index
 * @property {{width: number, height: number, words: Uint32Array}} cells
 * @property {boolean} partial some squares did not fit
 */

/** @param {ArrayBuffer} buffer @returns {Ground} */
export function parseGround(buffer) {
  const words = new Uint32Array(buffer), signed = new Int32Array(buffer);
  if (words[0] !== MAGIC || words[1] !== 1) throw new Error('this is no ground of version 1');
  const count = words[2], squares = [];
  for (let i = 0; i < count; i++) squares.push({ x: signed[4 + 2 * i], y: signed[5 + 2 * i], at: 4 + 2 * count + ACROSS * ACROSS * i });
  const x0 = squares.reduce((least, s) => Math.min(least, s.x), Infinity), y0 = squares.reduce((least, s) => Math.min(least, s.y), Infinity);
  const kept = squares.filter((s) => s.x - x0 < MOST_ACROSS && s.y - y0 < MOST_ACROSS).slice(0, MOST_SQUARES);
  const width = kept.reduce((most, s) => Math.max(most, s.x - x0 + 1), 1), height = kept.reduce((most, s) => Math.max(most, s.y - y0 + 1), 1);
  const index = new Uint16Array(width * height), rows = Math.max(1, Math.ceil(kept.length / SQUARES_ACROSS));
  const across = SQUARES_ACROSS * ACROSS, cells = new Uint32Array(across * rows * ACROSS);
  kept.forEach(({ x, y, at }, i) => {
    index[(y - y0) * width + x - x0] = i + 1;
    const column = i % SQUARES_ACROSS * ACROSS, row = Math.floor(i / SQUARES_ACROSS) * ACROSS;
    for (let r = 0; r < ACROSS; r++) cells.set(words.subarray(at + r * ACROSS, at + (r + 1) * ACROSS), (row + r) * across + column);
  });
  return {
    corner: count ? [SQUARE * x0, SQUARE * y0] : [0, 0], partial: kept.length < count,
    index: { width, height, words: index }, cells: { width: across, height: rows * ACROSS, words: cells },
  };
}

/** The generations that made tiles, oldest first: cells name them by their place. @param {{builtIn: number}[]} tiles */
export const generationsOf = (tiles) => [...new Set(tiles.map((t) => t.builtIn))].sort((a, b) => a - b);

/** @param {number} input */
export const inputColour = (input) => INPUT_COLOURS[input % INPUT_COLOURS.length];

/** Colours of a value from low to high; the shader has the same (shaders.js). */
export const RAMP = ['#352a6b', '#2f5c8f', '#25848e', '#3dab79', '#9bcb4a', '#fbe33a'];

/** The colour of a share of the ramp, as the shader mixes it. @param {number} share */
export function rampColour(share) {
  const at = 5 * Math.max(0, Math.min(1, share)), i = Math.min(4, Math.floor(at));
  const square = (/** @type {string} */ rgb) => [1, 3, 5].map((k) => (parseInt(rgb.slice(k, k + 2), 16) / 255) ** 2);
  const a = square(RAMP[i]), b = square(RAMP[i + 1]);
  const mixed = a.map((v, k) => Math.round(255 * Math.sqrt(v * (1 - at + i) + b[k] * (at - i))));
  return `#${mixed.map((v) => v.toString(16).padStart(2, '0')).join('')}`;
}

/** Of the generation at a place among `count`: old is dark, new is bright. @param {number} place @param {number} count */
export const ageColour = (place, count) => rampColour(count > 1 ? place / (count - 1) : 1);

/**
 * Colour and text of each row.
 * @param {string} colouring @param {any} city as /api/city tells it
 * @param {{scans: boolean, diff: import('./generations.js').Diff | null, distances: any, tiles: import('./map.js').Tile[]}} beside what is drawn over it
 * @returns {[string, string][]}
 */
export function legendRows(colouring, city, { scans, diff, distances, tiles }) {
  const rows = colouring === 'source' ? sourceRows(city) : colouring === 'age' ? ageRows(city, tiles) :
    colouring === 'distance' ? distanceRows(distances) : cityRows(colouring, city, scans);
  if (diff) rows.unshift([ONLY_BEFORE, `only in generation ${diff.before.generation}`], [ONLY_AFTER, `only in generation ${diff.after.generation}`]);
  return rows;
}

/** The inputs. @param {any} city @returns {[string, string][]} */
function sourceRows(city) {
  const most = 12, name = (/** @type {string} */ path) => path.split('/').pop() ?? path;
  /** @type {[string, string][]} */ const rows = city.inputs.slice(0, most).map((/** @type {string} */ path, /** @type {number} */ i) => [inputColour(i), name(path)]);
  const more = city.inputs.length - rows.length;
  if (city.inputs.length > INPUT_COLOURS.length) rows.push(['#00000000', `${more > 0 ? `and ${more} more; ` : ''}colours repeat: a pick names the inputs`]);
  rows.push([UNKNOWN_COLOUR, 'unknown']);
  return rows;
}

/** When tiles were made. @param {any} city @param {import('./map.js').Tile[]} tiles @returns {[string, string][]} */
function ageRows(city, tiles) {
  const made = generationsOf(tiles), most = 12, step = Math.max(1, Math.ceil(made.length / most));
  const created = new Map(city.history.map((/** @type {any} */ g) => [g.generation, g.created]));
  /** @type {[string, string][]} */ const rows = [];
  made.forEach((g, i) => { if (i % step === 0 || i === made.length - 1) rows.push([ageColour(i, made.length), `generation ${g}${created.has(g) ? ` of ${created.get(g)}` : ''}`]); });
  return rows;
}

/** @param {any} distances @returns {[string, string][]} */
function distanceRows(distances) {
  /** @type {[string, string][]} */ const rows = RAMP.map((rgb, i) => [rgb, `${(100 * distances.p95_m * i / 5).toFixed(2)} cm${i === 5 ? ' and more' : ''}`]);
  rows.push(['#00000000', `${distances.name}: median ${(100 * distances.median_m).toFixed(2)} cm, 95 % within ${(100 * distances.p95_m).toFixed(2)} cm, largest ${(100 * distances.max_m).toFixed(1)} cm`]);
  return rows;
}

/** @param {string} colouring @param {any} city @param {boolean} scans @returns {[string, string][]} */
function cityRows(colouring, city, scans) {
  const [low, high] = city.heights_m;
  switch (colouring) {
    case 'class':
      return [...city.classes.map((/** @type {{rgb: string, name: string}} */ c) => [c.rgb, c.name]),
        [city.unlisted.rgb, city.classes.length ? 'any other' : 'unlabelled']];
    case 'height':
      return RAMP.map((rgb, i) => [rgb, `${(low + (high - low) * i / 5).toFixed(1)} m`]);
    case 'intensity':
      return [0, 0.25, 0.5, 0.75, 1].map((share) => {
        const v = Math.round(255 * Math.sqrt(share));
        return [`rgb(${v} ${v} ${v})`, `${Math.round(65535 * share)}`];
      });
    default: {
      /** @type {[string, string][]} */ const rows = [
        ['rgb(255 128 128)', 'faces east'], ['rgb(0 128 128)', 'faces west'], ['rgb(128 255 128)', 'faces north'],
        ['rgb(128 0 128)', 'faces south'], ['rgb(128 128 255)', 'faces up']];
      if (scans) rows.push(['rgb(128 128 128)', 'returns of scans: the way to the sensor']);
      return rows;
    }
  }
}
