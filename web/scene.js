// Which cubes are loaded, and which parts of them are drawn.
//
// A frame begins with the coarsest cubes. The part with the largest error on the screen is replaced by the
// cube below it again and again, until every error is small enough, the budget of discs is used up, or what
// would be needed is not here yet: then it is asked for, and the coarse part stays. So there is never a hole,
// and never more than the budget.
//
// Memory is a budget as well. Room is made by dropping cubes that nothing below depends on: those that are not
// shown, oldest first, then shown ones that matter clearly less than the new one. A cube for which there is no
// room is not asked for again before the camera moves, so that nothing is loaded and dropped in turn.

import { boxDistance, mayBeSeen, pixelsPerMetre, sidePlanes } from './math.js';

/** @typedef {import('./math.js').Vec3} Vec3 */
/** @typedef {import('./math.js').Camera} Camera */
/** @typedef {{first: number, count: number, place: number, min: Vec3, max: Vec3}} Piece */
/**
 * @typedef {object} Cube
 * @property {string} key
 * @property {number[]} id level, x, y, z
 * @property {Cube | null} parent
 * @property {'absent' | 'loading' | 'ready'} state
 * @property {number} bytes
 * @property {number} count
 * @property {number} unit metres of one step of coordinates and radii
 * @property {number} children
 * @property {boolean} incomplete
 * @property {Vec3} corner
 * @property {Piece[]} pieces
 * @property {unknown} texture
 * @property {number} usedIn frame
 * @property {number} priority error on the screen that it mended last
 * @property {number} refusedIn pose for which there was no room
 * @property {number} failures
 */
/** @typedef {{cube: Cube, pieces: Piece[], count: number, below: Cube | null, error: number}} Part */

const LAST_CELL_LEVEL = 3;
const MOST_IN_FLIGHT = 6;
/** A cube below has about this many times the discs. */
const GROWTH = 4;
const MAGIC = 0x564c5343;

/** Metres; 0 for the splats themselves. @param {number} level */
export const voxel = (level) => (level === 0 ? 0 : 2 ** (level - 3));

/**
 * Reads the header and the pieces of a cube (docs/formats.md); the columns stay where they are.
 * @param {ArrayBuffer} buffer
 */
export function parseCube(buffer) {
  const words = new Uint32Array(buffer, 0, Math.floor(buffer.byteLength / 4)), signed = new Int32Array(words.buffer, 0, words.length);
  if (words[0] !== MAGIC || (words[1] & 0xffff) !== 1) throw new Error('this is no cube of version 1');
  const unit = 2 ** (words[2] - 13);
  /** @type {Piece[]} */ const pieces = [];
  for (let i = 0; i < words[8]; i++) {
    const at = 16 + 10 * i;
    pieces.push({
      first: words[at], count: words[at + 1], place: words[at + 2],
      min: [signed[at + 4] * unit, signed[at + 5] * unit, signed[at + 6] * unit],
      max: [signed[at + 7] * unit, signed[at + 8] * unit, signed[at + 9] * unit],
    });
  }
  return {
    unit, pieces, count: words[7], children: words[3] & 0xff, incomplete: (words[3] >> 8 & 1) === 1,
    corner: /** @type {Vec3} */ ([signed[4], signed[5], signed[6]]),
    columns: words.subarray(words[9]),
  };
}

export class Scene {
  /**
   * @param {{roots: number[][]}} city
   * @param {(id: number[]) => Promise<ArrayBuffer>} load
   * @param {{upload(columns: Uint32Array, count: number): unknown, drop(texture: unknown): void}} store
   */
  constructor(city, load, store) {
    this.load = load;
    this.store = store;
    this.discBudget = 1_000_000;
    this.byteBudget = 256 * 2 ** 20;
    this.errorPixels = 6;
    /** Nothing finer is shown: to look at levels one by one. */ this.finest = 0;
    /** @type {Map<string, Cube>} */ this.cubes = new Map();
    this.roots = city.roots.map((id) => this.cube(id, null));
    this.bytes = 0;
    this.frame = 0;
    this.pose = 0;
    this.inFlight = 0;
    this.loaded = 0;
    this.dropped = 0;
    this.refused = 0;
    /** @type {string | null} */ this.trouble = null;
    this.onChange = () => {};
  }

  /** @param {number[]} id @param {Cube | null} parent @returns {Cube} */
  cube(id, parent) {
    const key = id.join('/');
    let cube = this.cubes.get(key);
    if (!cube) {
      cube = {
        key, id, parent, state: 'absent', bytes: 0, count: 0, unit: 1, children: 0, incomplete: false,
        corner: [0, 0, 0], pieces: [], texture: null, usedIn: -1, priority: 0, refusedIn: -1, failures: 0,
      };
      this.cubes.set(key, cube);
    }
    return cube;
  }

  /** The camera is somewhere else: what had no room may be tried again. */
  moved() { this.pose++; }

  /** Everything must be loaded again, for instance because the GPU forgot it. */
  forget() {
    for (const cube of this.cubes.values()) if (cube.state === 'ready') this.drop(cube);
    this.pose++;
  }

  /**
   * What is to be drawn for a camera, and what is wanted for a better picture.
   * @param {Camera} camera @param {{width: number, height: number}} size
   */
  select(camera, size) {
    this.frame++;
    // Only when the budget was lowered, or the coarsest cubes alone are larger.
    while (this.bytes > this.byteBudget && this.trim()) { /* from the finest up */ }
    const view = { eye: camera.eye, planes: sidePlanes(camera, size), pixels: (/** @type {number} */ distance) => pixelsPerMetre(camera, size, distance) };
    /** @type {Part[]} */ const open = [];
    /** @type {Part[]} */ const shown = [];
    /** @type {{cube: Cube, error: number}[]} */ const wanted = [];
    let discs = 0, expected = 0, limited = false;
    for (const root of this.roots) {
      if (root.state !== 'ready') { wanted.push({ cube: root, error: Infinity }); continue; }
      root.usedIn = this.frame;
      root.priority = Infinity;
      for (const part of this.parts(root, view, null)) { push(open, part); discs += part.count; }
    }
    for (let part = pop(open); part; part = pop(open)) {
      if (!part.below || part.error <= this.errorPixels || part.below.id[0] < this.finest) { shown.push(part); continue; }
      const below = part.below;
      if (below.state !== 'ready') {
        shown.push(part);
        if (discs + expected + (GROWTH - 1) * part.count <= this.discBudget) {
          expected += (GROWTH - 1) * part.count;
          wanted.push({ cube: below, error: part.error });
        } else limited = true;
        continue;
      }
      const parts = this.parts(below, view, part);
      const more = parts.reduce((sum, p) => sum + p.count, 0) - part.count;
      if (discs + more > this.discBudget) { limited = true; shown.push(part); continue; }
      discs += more;
      below.priority = below.usedIn === this.frame ? Math.max(below.priority, part.error) : part.error;
      below.usedIn = this.frame;
      for (const p of parts) push(open, p);
    }
    wanted.sort((a, b) => b.error - a.error);
    const asked = this.ask(wanted);
    const largest = shown.reduce((most, p) => (p.below ? Math.max(most, p.error) : most), 0);
    return { parts: shown, discs, limited, largest, settled: this.inFlight === 0 && asked === 0 };
  }

  /**
   * The visible parts of a cube: one for each piece in cells, one for each octant above. With `of`, only what
   * stands for that part of the cube above.
   * @param {Cube} cube @param {{eye: Vec3, planes: import('./math.js').Plane[], pixels: (distance: number) => number}} view @param {Part | null} of
   * @returns {Part[]}
   */
  parts(cube, view, of) {
    const level = cube.id[0], cells = level <= LAST_CELL_LEVEL;
    const place = of && cells && of.cube.id[0] <= LAST_CELL_LEVEL ? of.pieces[0].place : -1;
    /** @type {Map<number, Part & {distance: number}>} */ const found = new Map();
    for (const piece of cube.pieces) {
      if (place >= 0 && piece.place !== place) continue;
      const min = /** @type {Vec3} */ ([0, 1, 2].map((a) => cube.corner[a] + piece.min[a] - view.eye[a]));
      const max = /** @type {Vec3} */ ([0, 1, 2].map((a) => cube.corner[a] + piece.max[a] - view.eye[a]));
      if (!mayBeSeen(view.planes, min, max)) continue;
      const distance = boxDistance(min, max), name = cells ? piece.place : piece.place >> 3;
      const part = found.get(name);
      if (part) {
        part.pieces.push(piece);
        part.count += piece.count;
        part.distance = Math.min(part.distance, distance);
      } else {
        found.set(name, {
          cube, pieces: [piece], count: piece.count, below: this.below(cube, name), error: 0, distance });
      }
    }
    for (const part of found.values()) part.error = voxel(level) * view.pixels(part.distance);
    return [...found.values()];
  }

  /** @param {Cube} cube @param {number} octant @returns {Cube | null} */
  below(cube, octant) {
    const [level, x, y, z] = cube.id;
    if (level === 0) return null;
    if (level <= LAST_CELL_LEVEL) return this.cube([level - 1, x, y, z], cube);
    if (!(cube.children >> octant & 1)) return null;
    return this.cube(
      [level - 1, 2 * x + (octant & 1), 2 * y + (octant >> 1 & 1), 2 * z + (octant >> 2)], cube);
  }

  /** Asks for the most important ones. Returns how many are still to come. @param {{cube: Cube, error: number}[]} wanted */
  ask(wanted) {
    let open = 0;
    for (const { cube, error } of wanted) {
      cube.priority = error;
      if (cube.state !== 'absent' || cube.refusedIn === this.pose || cube.failures > 3) continue;
      open++;
      if (this.inFlight < MOST_IN_FLIGHT) this.fetch(cube);
    }
    return open;
  }

  /** @param {Cube} cube */
  async fetch(cube) {
    cube.state = 'loading';
    this.inFlight++;
    try {
      const buffer = await this.load(cube.id);
      const { columns, ...facts } = parseCube(buffer);
      if (!cube.parent || this.makeRoom(columns.byteLength, cube.priority)) {
        Object.assign(cube, facts, { bytes: columns.byteLength });
        cube.texture = cube.count > 0 ? this.store.upload(columns, cube.count) : null;
        cube.state = 'ready';
        cube.usedIn = this.frame;
        this.bytes += cube.bytes;
        this.loaded++;
      } else {
        cube.state = 'absent';
        cube.refusedIn = this.pose;
        this.refused++;
      }
      cube.failures = 0;
      // One that failed is told until it comes, or until all are tried again.
      if (![...this.cubes.values()].some((c) => c.failures > 0)) this.trouble = null;
    } catch (e) {
      cube.state = 'absent';
      cube.failures++;
      this.trouble = String(e instanceof Error ? e.message : e);
    }
    this.inFlight--;
    this.onChange();
  }

  /** The server is back: what failed may be tried again. */
  retry() { for (const cube of this.cubes.values()) cube.failures = 0; }

  /** Drops what nothing depends on; false when there is no such cube. */
  trim() {
    const before = this.dropped;
    this.makeRoom(0, Infinity);
    return this.dropped > before;
  }

  /**
   * Whether there is room for so many bytes, which matter so much; makes it if that can be done.
   * @param {number} bytes @param {number} priority
   */
  makeRoom(bytes, priority) {
    const needed = () => this.bytes + bytes > this.byteBudget;
    if (!needed()) return true;
    const carries = new Set();
    for (const c of this.cubes.values()) if (c.state !== 'absent' && c.parent) carries.add(c.parent);
    const victims = [...this.cubes.values()].filter((c) => c.state === 'ready' && c.parent && !carries.has(c));
    const idle = victims.filter((c) => c.usedIn < this.frame).sort((a, b) => a.usedIn - b.usedIn);
    const lesser = victims.filter((c) => c.usedIn === this.frame && 1.5 * c.priority < priority)
      .sort((a, b) => a.priority - b.priority);
    for (const victim of [...idle, ...lesser]) {
      if (!needed()) break;
      this.drop(victim);
      victim.refusedIn = victim.usedIn === this.frame ? this.pose : -1;
    }
    return !needed();
  }

  /**
   * Its pieces go, too, and what is known of the cubes below it, of which none is here: a long flight meets ever new
   * cubes.
   * @param {Cube} cube
   */
  drop(cube) {
    if (cube.texture) this.store.drop(cube.texture);
    cube.texture = null;
    cube.pieces = [];
    for (const below of this.cubes.values()) if (below.parent === cube && below.state === 'absent') this.cubes.delete(below.key);
    cube.state = 'absent';
    this.bytes -= cube.bytes;
    this.dropped++;
  }
}

/** A heap by error, largest first. @param {Part[]} heap @param {Part} part */
function push(heap, part) {
  let i = heap.length;
  heap.push(part);
  while (i > 0) {
    const up = (i - 1) >> 1;
    if (heap[up].error >= part.error) break;
    heap[i] = heap[up];
    i = up;
  }
  heap[i] = part;
}

/** @param {Part[]} heap @returns {Part | undefined} */
function pop(heap) {
  const top = heap[0], last = heap.pop();
  if (!last || heap.length === 0) return top ?? last;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1].error > heap[child].error) child++;
    if (heap[child].error <= last.error) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}
