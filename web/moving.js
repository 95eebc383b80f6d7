// Where the camera is and how it moves: by flying, around a point, along the trajectory, to a tile, from above; and
// the keys and the mouse that move it.

import { add, axes, length, scale, sub } from './math.js';
import { byId } from './panel.js';

/** @typedef {import('./math.js').Vec3} Vec3 */
/** @typedef {import('./map.js').Tile} Tile */

export const degrees = Math.PI / 180;
const MOTIONS = new Set(['w', 'a', 's', 'd', 'q', 'e', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']);
/** For those who want nothing to glide, a key is a step of so many seconds. */
const STEP = 0.25;
const NARROWEST = 1, WIDEST = 100_000;  // metres of a parallel projection

export class Mover {
  /** @param {Tile[]} tiles @param {number[][]} path as /api/path has it @param {() => void} moved */
  constructor(tiles, path, moved) {
    this.tiles = tiles;
    this.path = path;
    this.moved = moved;
    this.mode = 'fly';
    this.along = 0;
    this.box = tiles.reduce((b, t) => [
      Math.min(b[0], t.box[0]), Math.min(b[1], t.box[1]), Math.min(b[2], t.box[2]),
      Math.max(b[3], t.box[3]), Math.max(b[4], t.box[4]), Math.max(b[5], t.box[5])],
    [Infinity, Infinity, Infinity, -Infinity, -Infinity, -Infinity]);
    /** @type {import('./math.js').Camera} */
    this.camera = { eye: [0, 0, 0], yaw: 0, pitch: 0, fov: 75 * degrees, span: 0 };
    /** @type {Vec3} Around which one orbits, and to which scales are true. */ this.pivot = this.middle(this.box);
  }

  /** @param {number[]} box @returns {Vec3} */
  middle(box) { return [(box[0] + box[3]) / 2, (box[1] + box[4]) / 2, (box[2] + box[5]) / 2]; }

  get parallel() { return this.camera.span > 0; }

  /** How far the camera is from what it looks at. */
  get distance() { return Math.max(1, length(sub(this.pivot, this.camera.eye))); }

  overview() {
    const size = Math.max(this.box[3] - this.box[0], this.box[4] - this.box[1], 20), { camera } = this;
    this.pivot = this.middle(this.box);
    camera.yaw = 90 * degrees;
    if (this.parallel) { this.lookDown(1.1 * size); return; }
    camera.pitch = -55 * degrees;
    camera.eye = sub(this.pivot, scale(axes(camera).forward, 0.95 * size));
    this.moved();
  }

  /** A map: straight down from above everything, north up. @param {number} span metres across the picture */
  lookDown(span) {
    const { camera } = this;
    camera.span = Math.max(NARROWEST, Math.min(WIDEST, span));
    camera.yaw = 90 * degrees;
    camera.pitch = -90 * degrees;
    camera.eye = [this.pivot[0], this.pivot[1], this.box[5] + 20];
    this.moved();
  }

  /** To a parallel projection from above, as wide as what is seen now, and back. @param {boolean} on */
  setParallel(on) {
    if (on === this.parallel) return;
    const { camera } = this;
    if (on) {
      this.lookDown(2 * this.distance * Math.tan(camera.fov / 2));
      return;
    }
    const reach = camera.span / 2 / Math.tan(camera.fov / 2);
    camera.span = 0;
    camera.pitch = -55 * degrees;
    this.pivot = [camera.eye[0], camera.eye[1], this.pivot[2]];
    camera.eye = sub(this.pivot, scale(axes(camera).forward, reach));
    this.moved();
  }

  /** @param {number} dYaw @param {number} dPitch */
  turn(dYaw, dPitch) {
    const { camera, distance } = this, most = (this.parallel ? 90 : 89.9) * degrees;
    camera.yaw += dYaw;
    camera.pitch = Math.max(-most, Math.min(most, camera.pitch + dPitch));
    if (this.mode === 'orbit') camera.eye = sub(this.pivot, scale(axes(camera).forward, distance));
    this.moved();
  }

  /** @param {number} forward @param {number} left @param {number} up metres; of a map, forward is up the picture */
  go(forward, left, up) {
    const { camera } = this, a = axes(camera);
    const ahead = this.parallel ? a.up : a.forward;
    const by = add(add(scale(ahead, forward), scale(a.left, left)), [0, 0, up]);
    camera.eye = add(camera.eye, by);
    if (this.parallel) this.pivot = add(this.pivot, by);
    else if (this.mode === 'orbit' && (left || up)) this.pivot = add(this.pivot, add(scale(a.left, left), [0, 0, up]));
    this.moved();
  }

  /** Nearer by a share of the way, or farther. @param {number} share */
  zoom(share) {
    const { camera } = this;
    if (this.parallel) {
      camera.span = Math.max(NARROWEST, Math.min(WIDEST, camera.span * (1 - share)));
      this.moved();
      return;
    }
    const reach = this.mode === 'orbit' ? this.distance : Math.max(5, camera.eye[2] - this.box[2]);
    camera.eye = add(camera.eye, scale(axes(camera).forward, share * reach));
    this.moved();
  }

  /** @param {number} share of the way */
  walkTo(share) {
    const { path, camera } = this;
    if (path.length === 0) return;
    this.along = Math.max(0, Math.min(1, share));
    const at = this.along * (path.length - 1), i = Math.max(0, Math.min(Math.floor(at), path.length - 2)), t = at - i;
    const a = path[i], b = path[i + 1] ?? a;
    camera.eye = [a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t, a[3] + (b[3] - a[3]) * t];
    camera.yaw = a[4];
    camera.pitch = 0;
    camera.span = 0;
    this.pivot = add(camera.eye, scale(axes(camera).forward, 15));
    this.mode = 'fly';
    this.moved();
  }

  /** @param {Tile | undefined} tile */
  goToTile(tile) {
    if (!tile) return;
    const { camera } = this, across = Math.max(tile.box[3] - tile.box[0], 20);
    this.pivot = this.middle(tile.box);
    if (this.parallel) { this.lookDown(1.3 * across); return; }
    camera.eye = sub(this.pivot, scale(axes({ ...camera, pitch: -45 * degrees }).forward, 1.2 * across));
    camera.pitch = -45 * degrees;
    this.moved();
  }

  /** With a sensor, looking where it is heading. @param {number[]} pose 3 × 4 by rows */
  ride(pose) {
    const { camera } = this;
    camera.eye = [pose[3], pose[7], pose[11]];
    camera.yaw = Math.atan2(pose[4], pose[0]);
    camera.pitch = Math.asin(Math.max(-1, Math.min(1, pose[8])));
    camera.span = 0;
    this.moved();
  }

  /** Into the address. @param {URLSearchParams} view */
  remember(view) {
    const { camera } = this, turned = [camera.yaw, camera.pitch, camera.fov].map((v) => (v / degrees).toFixed(3));
    view.set('v', [...camera.eye.map((v) => v.toFixed(3)), ...turned].join('_'));
    view.set('m', this.mode);
    view.set('p', this.pivot.map((v) => v.toFixed(3)).join('_'));
    view.set('s', this.along.toFixed(5));
    if (this.parallel) view.set('h', camera.span.toFixed(3));
  }
  /** From the address. @param {URLSearchParams} from */
  restore(from) {
    const numbers = (/** @type {string | null} */ text, /** @type {number} */ n) => {
      const v = (text ?? '').split('_').map(Number);
      return v.length === n && v.every(Number.isFinite) && text ? v : null;
    };
    const v = numbers(from.get('v'), 6), p = numbers(from.get('p'), 3), h = numbers(from.get('h'), 1), { camera } = this;
    camera.span = h && h[0] > 0 ? Math.max(NARROWEST, Math.min(WIDEST, h[0])) : 0;
    if (v) {
      camera.eye = [v[0], v[1], v[2]];
      [camera.yaw, camera.pitch] = [v[3] * degrees, Math.max(-90, Math.min(90, v[4])) * degrees];
      camera.fov = Math.max(5, Math.min(120, v[5])) * degrees;
    } else this.overview();
    if (p) this.pivot = [p[0], p[1], p[2]];
    this.along = Math.max(0, Math.min(1, Number(from.get('s') ?? 0) || 0));
    this.mode = from.get('m') === 'orbit' ? 'orbit' : 'fly';
  }
}

export class Controls {
  /**
   * @param {HTMLCanvasElement} canvas @param {Mover} mover @param {Record<string, () => void>} keys what single keys do
   * @param {{pick: (x: number, y: number) => void, speed: () => number}} to pick at pixels of the canvas; metres a second
   */
  constructor(canvas, mover, keys, to) {
    this.canvas = canvas;
    this.mover = mover;
    this.to = to;
    /** @type {Set<string>} */ this.held = new Set();
    /** @type {{x: number, y: number, far: boolean} | null} */ this.drag = null;
    this.calm = matchMedia('(prefers-reduced-motion: reduce)');
    addEventListener('keydown', (event) => {
      const target = /** @type {HTMLElement} */ (event.target), typing = ['INPUT', 'SELECT'].includes(target.tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey || target.id === 'map') return;
      if (event.key === 'Enter' && target.tagName === 'BUTTON') return;
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      if (!MOTIONS.has(key)) { keys[key]?.(); return; }
      event.preventDefault();
      if (this.calm.matches) this.moveBy(STEP, new Set([key]));
      else this.held.add(key);
    });
    addEventListener('keyup', (event) => this.held.delete(event.key.length === 1 ? event.key.toLowerCase() : event.key));
    addEventListener('blur', () => this.held.clear());
    this.listenToMouse();
  }

  /** Whether somebody is moving the camera now. */
  get busy() { return this.held.size > 0 || this.drag !== null; }

  listenToMouse() {
    const { canvas, mover } = this;
    canvas.addEventListener('pointerdown', (event) => {
      this.drag = { x: event.offsetX, y: event.offsetY, far: false };
      canvas.setPointerCapture(event.pointerId);
      canvas.focus();
    });
    canvas.addEventListener('pointermove', (event) => {
      const { drag } = this;
      if (!drag || event.buttons === 0) return;
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (!drag.far && Math.hypot(dx, dy) < 4) return;
      if (mover.parallel) {  // the map comes along
        const metres = mover.camera.span / canvas.clientWidth;
        mover.go(dy * metres, dx * metres, 0);
      } else {
        const angle = mover.camera.fov / canvas.clientWidth, sign = mover.mode === 'orbit' ? -1 : 1;
        mover.turn(sign * dx * angle, sign * dy * angle);
      }
      this.drag = { x: event.offsetX, y: event.offsetY, far: true };
    });
    canvas.addEventListener('pointerup', (event) => {
      if (this.drag && !this.drag.far) this.to.pick(event.offsetX, event.offsetY);
      this.drag = null;
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      mover.zoom(-Math.sign(event.deltaY) * 0.1);
    }, { passive: false });
  }

  /** What the keys that are held do in this time. @param {number} seconds */
  tick(seconds) { if (this.held.size > 0) this.moveBy(seconds, this.held); }

  /** @param {number} seconds @param {Set<string>} keys */
  moveBy(seconds, keys) {
    const on = (/** @type {string} */ plus, /** @type {string} */ minus) => (keys.has(plus) ? 1 : 0) - (keys.has(minus) ? 1 : 0);
    const step = seconds * this.to.speed();
    const go = [on('w', 's'), on('a', 'd'), on('e', 'q')], turn = [on('ArrowLeft', 'ArrowRight'), on('ArrowUp', 'ArrowDown')];
    if (go.some((v) => v !== 0)) this.mover.go(step * go[0], step * go[1], step * go[2]);
    if (turn.some((v) => v !== 0)) this.mover.turn(seconds * 1.2 * turn[0], seconds * 0.9 * turn[1]);
  }
}

/** Arrows and mouse on the map of tiles. @param {import('./map.js').TileMap} map @param {Mover} mover @param {() => void} chosen */
export function listenToMap(map, mover, chosen) {
  map.canvas.addEventListener('pointermove', (e) => { map.chosen = map.at(e.offsetX, e.offsetY); chosen(); });
  map.canvas.addEventListener('click', (e) => mover.goToTile(map.tiles[map.at(e.offsetX, e.offsetY)]));
  map.canvas.addEventListener('keydown', (event) => {
    const steps = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] });
    if (steps[event.key]) { map.step(...steps[event.key]); event.preventDefault(); }
    else if (event.key === 'Enter') mover.goToTile(map.tiles[map.chosen]);
    else if (event.key === 'Escape') byId('view', HTMLCanvasElement).focus();
    chosen();
  });
}
