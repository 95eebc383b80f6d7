// The tiles from above: how dense they are, which is chosen, which cannot be shown, and where the camera is.

/** @typedef {import('./math.js').Camera} Camera */
/**
 * @typedef {object} Tile
 * @property {string} name
 * @property {number} splats
 * @property {number} bytes
 * @property {number} points
 * @property {number} removed
 * @property {number} builtIn
 * @property {number[]} inputs
 * @property {string} problem
 * @property {number[]} box
 * @property {string} why the build made it
 */

/** As /api/city lists them. @param {any[]} row @returns {Tile} */
export const tileFrom = (row) => ({
  name: `${row[0]}/${row[1]}/${row[2]}`, splats: row[3], bytes: row[4], points: row[5], removed: row[6], builtIn: row[7],
  inputs: row[8], problem: row[9], box: row.slice(10, 16), why: row[16] ?? '',
});

export class TileMap {
  /** @param {HTMLCanvasElement} canvas @param {Tile[]} tiles */
  constructor(canvas, tiles) {
    this.canvas = canvas;
    this.tiles = tiles;
    this.chosen = -1;
    /** @type {number[][]} */ this.path = [];
    /** @type {import('./generations.js').Change[]} Tiles that another generation has otherwise. */ this.changes = [];
    this.box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { box } of tiles)
      this.box = [Math.min(this.box[0], box[0]), Math.min(this.box[1], box[1]), Math.max(this.box[2], box[3]), Math.max(this.box[3], box[4])];
    const area = (/** @type {Tile} */ t) => Math.max(1, (t.box[3] - t.box[0]) * (t.box[4] - t.box[1]));
    this.densities = tiles.map((t) => t.splats / area(t));
    this.most = this.densities.reduce((a, b) => Math.max(a, b), 1e-9);
  }

  transform() {
    const { width, height } = this.canvas, [x0, y0, x1, y1] = this.box;
    const scale = 0.94 * Math.min(width / Math.max(1, x1 - x0), height / Math.max(1, y1 - y0));
    const mx = (x0 + x1) / 2, my = (y0 + y1) / 2;
    return {
      to: (/** @type {number} */ x, /** @type {number} */ y) => [width / 2 + (x - mx) * scale, height / 2 - (y - my) * scale],
      from: (/** @type {number} */ px, /** @type {number} */ py) => [mx + (px - width / 2) / scale, my - (py - height / 2) / scale],
      scale,
    };
  }

  /** @param {Camera} camera */
  draw(camera) {
    const { canvas } = this, ratio = Math.min(devicePixelRatio || 1, 2);
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    const g = canvas.getContext('2d');
    if (!g) return;
    const { to } = this.transform();
    this.tiles.forEach((tile, i) => {
      const [px, py] = to(tile.box[0], tile.box[4]), [qx, qy] = to(tile.box[3], tile.box[1]);
      const share = Math.sqrt(this.densities[i] / this.most);
      g.fillStyle = tile.problem ? '#7a1f14' : `hsl(205 45% ${18 + 55 * share}%)`;
      g.fillRect(px, py, Math.max(1, qx - px - 1), Math.max(1, qy - py - 1));
      if (tile.problem) {  // a cross, for those who do not see the red
        g.strokeStyle = '#ffd0c8';
        g.lineWidth = 2;
        g.beginPath(); g.moveTo(px, py); g.lineTo(qx, qy); g.moveTo(px, qy); g.lineTo(qx, py); g.stroke();
      }
      if (i === this.chosen) {
        g.strokeStyle = '#ffd54a';
        g.lineWidth = 3;
        g.strokeRect(px, py, qx - px - 1, qy - py - 1);
      }
    });
    g.font = `${13 * ratio}px system-ui, sans-serif`;
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    for (const { kind, box } of this.changes) {
      const [px, py] = to(box[0], box[4]), [qx, qy] = to(box[3], box[1]);
      g.strokeStyle = g.fillStyle = kind === 'added' ? '#56b4e9' : kind === 'removed' ? '#e69f00' : '#ffffff';
      g.lineWidth = 2 * ratio;
      g.strokeRect(px + 2, py + 2, qx - px - 4, qy - py - 4);
      g.fillText(kind === 'added' ? '+' : kind === 'removed' ? '−' : '±', (px + qx) / 2, (py + qy) / 2);
    }
    g.strokeStyle = '#ffffff';
    g.lineWidth = 1.5;
    g.beginPath();
    this.path.forEach((p, i) => { const [x, y] = to(p[1], p[2]); if (i) g.lineTo(x, y); else g.moveTo(x, y); });
    g.stroke();
    const [x, y] = to(camera.eye[0], camera.eye[1]), r = 8 * ratio;
    g.fillStyle = '#ffd54a';
    g.beginPath();
    g.moveTo(x, y);
    for (const side of [0.4, -0.4]) g.lineTo(x + r * 2 * Math.cos(camera.yaw + side), y - r * 2 * Math.sin(camera.yaw + side));
    g.fill();
  }

  /** The tile at a pixel of the element, or -1. @param {number} px @param {number} py */
  at(px, py) {
    const ratio = this.canvas.width / this.canvas.clientWidth, [x, y] = this.transform().from(px * ratio, py * ratio);
    return this.tiles.findIndex(({ box }) => x >= box[0] && x <= box[3] && y >= box[1] && y <= box[4]);
  }

  /** The nearest tile in a direction from the chosen one. @param {number} dx @param {number} dy */
  step(dx, dy) {
    if (this.chosen < 0) { this.chosen = 0; return; }
    const middle = (/** @type {Tile} */ t) => [(t.box[0] + t.box[3]) / 2, (t.box[1] + t.box[4]) / 2];
    const [x, y] = middle(this.tiles[this.chosen]);
    let best = -1, least = Infinity;
    this.tiles.forEach((tile, i) => {
      const [u, v] = middle(tile), along = (u - x) * dx + (v - y) * dy, aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
      if (i !== this.chosen && along > 0.5 && along + 2 * aside < least) { least = along + 2 * aside; best = i; }
    });
    if (best >= 0) this.chosen = best;
  }
}
