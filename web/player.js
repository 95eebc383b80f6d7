// Plays the scans of a run. Time stands at one of the times at which a scan began; of every shown sensor the scan
// is drawn that began last. A scan that is not here yet is asked for, and the one before it stays on the screen, as
// cubes do.

import { parseCube } from './scene.js';

/** @typedef {import('./math.js').Vec3} Vec3 */
/** @typedef {{name: string, frame: string, boxes: boolean, times: number[], poses: number[][]}} Sensor */
/** @typedef {{name: string, class: string, time: number, bottom: Vec3, forward: Vec3, left: Vec3, up: Vec3, size: Vec3}} Box */
/**
 * @typedef {object} Scan
 * @property {'loading' | 'ready' | 'failed'} state
 * @property {number} sensor
 * @property {number} number
 * @property {number} bytes
 * @property {number} count
 * @property {number} unit
 * @property {Vec3} corner
 * @property {boolean} incomplete
 * @property {unknown} texture
 * @property {Box[]} boxes
 * @property {number} used
 */

const MOST_IN_FLIGHT = 3;
const AHEAD = 4;

export class Player {
  /**
   * @param {{sensors: Sensor[]}} index @param {(path: string) => Promise<Response>} ask
   * @param {{upload(columns: Uint32Array, count: number): unknown, drop(texture: unknown): void}} store
   */
  constructor(index, ask, store) {
    this.sensors = index.sensors;
    this.ask = ask;
    this.store = store;
    this.byteBudget = 96 * 2 ** 20;
    this.bytes = 0;
    this.inFlight = 0;
    this.turn = 0;
    this.speed = 1;
    this.playing = false;
    this.on = this.sensors.length > 0;
    this.clock = 0;
    this.at = 0;
    /** @type {number[]} */ this.times = [];
    /** Which sensor alone; -1: all. */ this.only = -1;
    /** @type {Map<string, Scan>} */ this.scans = new Map();
    /** @type {Map<number, Scan>} What each sensor showed last. */ this.last = new Map();
    /** @type {string | null} */ this.trouble = null;
    this.onChange = () => {};
    this.choose(-1);
  }

  /** The numbers of the sensors that are shown. */
  shown() { return this.only >= 0 ? [this.only] : this.sensors.map((_, i) => i); }

  /** @param {number} only a sensor, or -1 for all */
  choose(only) {
    const time = this.times[this.at] ?? -Infinity;
    this.only = only >= 0 && only < this.sensors.length ? only : -1;
    this.times = [...new Set(this.shown().flatMap((s) => this.sensors[s].times))].sort((a, b) => a - b);
    this.last.clear();
    this.seek(time);
  }

  /** To the last beginning of a scan that is not later. @param {number} time */
  seek(time) {
    let low = 0, high = this.times.length;
    while (low + 1 < high) { const middle = low + high >> 1; if (this.times[middle] <= time) low = middle; else high = middle; }
    this.goTo(low);
  }

  /** @param {number} at place among the times */
  goTo(at) {
    this.at = Math.max(0, Math.min(this.times.length - 1, at));
    this.clock = this.times[this.at] ?? 0;
    this.trouble = null;
    this.want();
    this.onChange();
  }

  /** The scans that belong on the screen at a place of time: those that began last. @param {number} at */
  current(at) {
    const time = this.times[at] ?? -Infinity;
    return this.shown().map((sensor) => {
      const { times } = this.sensors[sensor];
      let low = -1, high = times.length;
      while (low + 1 < high) { const middle = low + high >> 1; if (times[middle] <= time) low = middle; else high = middle; }
      return { sensor, number: low };
    }).filter((s) => s.number >= 0);
  }

  /** What is drawn now. @returns {Scan[]} */
  layers() {
    if (!this.on) return [];
    const list = [];
    for (const { sensor, number } of this.current(this.at)) {
      const scan = this.scans.get(`${sensor}/${number}`);
      if (scan?.state === 'ready') this.last.set(sensor, scan);
      const shown = this.last.get(sensor);
      if (shown && shown.state === 'ready') list.push(shown);
    }
    return list;
  }

  /** Whether what belongs on the screen is there, or cannot come. */
  settled() {
    if (!this.on) return true;
    return this.current(this.at).every(({ sensor, number }) => ['ready', 'failed'].includes(this.scans.get(`${sensor}/${number}`)?.state ?? ''));
  }

  /** Asks for what belongs on the screen now, then for what comes next. */
  want() {
    if (!this.on) return;
    this.turn++;
    for (let at = this.at; at < Math.min(this.at + (this.playing ? AHEAD : 2), this.times.length); at++)
      for (const { sensor, number } of this.current(at)) {
        const scan = this.scans.get(`${sensor}/${number}`);
        if (scan) { scan.used = this.turn; if (scan.state !== 'failed' || at > this.at || this.trouble) continue; }
        if (this.inFlight < MOST_IN_FLIGHT) this.fetch(sensor, number);
      }
  }

  /** @param {number} sensor @param {number} number */
  async fetch(sensor, number) {
    const key = `${sensor}/${number}`;
    /** @type {Scan} */ const scan = {
      state: 'loading', sensor, number, bytes: 0, count: 0, unit: 1, corner: [0, 0, 0], incomplete: false, texture: null, boxes: [], used: this.turn };
    this.scans.set(key, scan);
    this.inFlight++;
    try {
      const [points, boxes] = await Promise.all([
        this.ask(`/api/scan/${key}`).then((r) => r.arrayBuffer()),
        this.sensors[sensor].boxes ? this.ask(`/api/boxes/${key}`).then((r) => r.json()) : { boxes: [] }]);
      // Not when the GPU forgot everything meanwhile: then the scan is asked for again.
      if (this.scans.get(key) === scan) {
        const { columns, pieces: _, ...facts } = parseCube(points);
        Object.assign(scan, facts, { boxes: boxes.boxes, bytes: columns.byteLength });
        if (scan.count > 0) scan.texture = this.store.upload(columns, scan.count);
        scan.state = 'ready';
        this.bytes += scan.bytes;
        this.makeRoom();
      }
    } catch (e) {
      scan.state = 'failed';
      this.trouble = e instanceof Error ? e.message : String(e);
      this.playing = false;
    }
    this.inFlight--;
    this.want();
    this.onChange();
  }

  /** Drops what was not wanted for longest, but nothing that is shown. */
  makeRoom() {
    const shown = new Set(this.last.values());
    const idle = [...this.scans].filter(([, s]) => s.state === 'ready' && s.used < this.turn && !shown.has(s)).sort((a, b) => a[1].used - b[1].used);
    for (const [key, scan] of idle) {
      if (this.bytes <= this.byteBudget) break;
      if (scan.texture) this.store.drop(scan.texture);
      this.bytes -= scan.bytes;
      this.scans.delete(key);
    }
  }

  /** The GPU forgot everything. */
  forget() {
    this.scans.clear();
    this.last.clear();
    this.bytes = 0;
    this.want();
  }

  /** @param {boolean} on */
  play(on) {
    this.playing = on && this.times.length > 1;
    if (this.playing && this.at === this.times.length - 1) this.goTo(0);
    this.want();
    this.onChange();
  }

  /** Time goes on, but never past a scan that is not here. Returns whether another one is to be shown. @param {number} seconds */
  tick(seconds) {
    if (!this.playing || !this.settled()) return false;
    this.clock += seconds * this.speed;
    const before = this.at;
    while (this.at + 1 < this.times.length && this.times[this.at + 1] <= this.clock) {
      this.at++;
      if (!this.settled()) { this.clock = this.times[this.at]; break; }
    }
    if (this.at === this.times.length - 1) this.playing = false;
    if (this.at === before && this.playing) return false;
    this.want();
    this.onChange();
    return true;
  }

  /** World from sensor of what is shown first. @returns {number[] | null} */
  pose() {
    const first = this.current(this.at)[0];
    return first ? this.sensors[first.sensor].poses[first.number] : null;
  }
}

/** The twelve edges of boxes as pairs of points from the eye, and a stroke that tells where forward is. @param {Box[]} boxes @param {Vec3} eye */
export function edgesOf(boxes, eye) {
  const out = [];
  for (const { bottom, forward, left, up, size } of boxes) {
    const corner = (/** @type {number} */ i, /** @type {number} */ j, /** @type {number} */ k) =>
      [0, 1, 2].map((a) => bottom[a] - eye[a] + i * size[0] / 2 * forward[a] + j * size[1] / 2 * left[a] + k * size[2] * up[a]);
    for (const [i, j] of [[-1, -1], [-1, 1], [1, -1], [1, 1]])
      out.push(...corner(i, j, 0), ...corner(i, j, 1), ...corner(-1, i, (j + 1) / 2), ...corner(1, i, (j + 1) / 2), ...corner(i, -1, (j + 1) / 2), ...corner(i, 1, (j + 1) / 2));
    out.push(...corner(0, 0, 0), ...corner(1.4, 0, 0));
  }
  return new Float32Array(out);
}
