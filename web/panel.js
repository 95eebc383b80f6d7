// Elements of the page by name, texts in them, and the panel that tells what was picked: what is under the mouse, as
// the server says, and the distance between two such places. What a city says is always set as text.

import { length, rayThrough, sub } from './math.js';

/** @typedef {import('./math.js').Vec3} Vec3 */

/** @template {HTMLElement} T @param {string} id @param {new () => T} kind @returns {T} */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`#${id} is not in the page`);
  return found;
}
/** @param {string} id @param {string} text */
export function say(id, text) { byId(id, HTMLElement).textContent = text; }
/** With thin spaces between thousands. @param {number} n */
export const count = (n) => n.toLocaleString('en').replaceAll(',', '\u2009');

/**
 * Names beside colours.
 * @param {HTMLElement} list @param {[string, string][]} rows colour and text
 */
export function fillLegend(list, rows) {
  list.replaceChildren();
  for (const [colour, text] of rows) {
    const swatch = document.createElement('canvas');
    swatch.width = swatch.height = 16;
    const g = swatch.getContext('2d');
    if (g) { g.fillStyle = colour; g.fillRect(0, 0, 16, 16); }
    const words = document.createElement('span');
    words.textContent = text;
    list.append(swatch, words);
  }
}

const nameOf = (/** @type {string} */ path) => path.split('/').pop() ?? path;

export class Picking {
  /** @param {(path: string) => Promise<Response>} ask @param {(picked: any) => void} met something was hit */
  constructor(ask, met) {
    this.ask = ask;
    this.met = met;
    this.measuring = false;
    /** @type {Vec3[]} */ this.ends = [];
    /** @type {any} */ this.picked = null;
    this.distance = 0;
  }

  /** @param {boolean} on */
  setMeasuring(on) {
    this.measuring = on;
    this.ends = [];
    byId('measure', HTMLButtonElement).setAttribute('aria-pressed', String(on));
    say('distance', on ? 'Pick the first point.' : '');
  }

  /**
   * @param {import('./math.js').Camera} camera @param {{width: number, height: number}} size of the picture
   * @param {[number, number]} at pixels from its top left corner @param {number} generation
   */
  async pick(camera, size, at, generation) {
    const { origin, direction } = rayThrough(camera, size, at[0], at[1]);
    this.picked = await (await this.ask(`/api/pick?o=${origin.join(',')}&d=${direction.join(',')}&g=${generation}`)).json();
    this.tell();
    byId('picked', HTMLElement).scrollIntoView({ block: 'nearest' });
    if (!this.picked.hit) return this.picked;
    if (this.measuring) this.measure(this.picked.position);
    this.met(this.picked);
    return this.picked;
  }

  tell() {
    const list = byId('picked', HTMLElement), { picked } = this;
    list.replaceChildren();
    const row = (/** @type {string} */ name, /** @type {string} */ value) => {
      const dt = document.createElement('dt'), dd = document.createElement('dd');
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    };
    if (!picked.hit) { row('here', 'nothing within 2 km'); return; }
    const three = (/** @type {number[]} */ v) => v.map((x) => x.toFixed(3)).join('  ');
    row('position', three(picked.position));
    row('distance', `${picked.range_m.toFixed(3)} m`);
    row('class', `${picked.class} (${picked.label})`);
    row('intensity', String(picked.intensity));
    row('normal', three(picked.normal));
    const s = picked.splat;
    if (s) {
      row('radius', `${(100 * s.radius_m).toFixed(1)} cm, from ${s.points}${s.points === 255 ? ' or more' : ''} points`);
      row('seen from', s.acquired_range_m === null ? 'unknown' : `${s.acquired_range_m} m`);
      row('tile', `${s.tile}, splat ${s.index}`);
      row('made in', `generation ${s.built_in}; shown: ${picked.generation}`);
      if (s.points_from) row('within it', s.points_from.length === 0 ? 'no point' : s.points_from.map((/** @type {any} */ p) => `${p.points} of ${nameOf(p.input)}`).join(', '));
      row('inputs of the tile', s.inputs.map(nameOf).join(', '));
    }
    row('id', picked.splat_id);
  }

  /** @param {Vec3} end */
  measure(end) {
    if (this.ends.length === 2) this.ends = [];
    this.ends.push(end);
    if (this.ends.length === 1) { say('distance', 'Pick the second point.'); return; }
    const d = sub(this.ends[1], this.ends[0]);
    this.distance = length(d);
    say('distance', `${this.distance.toFixed(3)} m apart; ${Math.hypot(d[0], d[1]).toFixed(3)} m across, ${d[2].toFixed(3)} m up`);
  }
}
