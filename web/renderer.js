// Draws the chosen parts of cubes with WebGL2. Nothing is decoded here: the columns of a cube go into a texture of
// 32-bit words as they came, and the vertex shader reads them.

import { axes, boxDistance } from './math.js';
import { DISC_FRAGMENT, DISC_VERTEX, LINE_FRAGMENT, LINE_VERTEX, PICTURE_FRAGMENT, PICTURE_VERTEX } from './shaders.js';

/** @typedef {import('./math.js').Camera} Camera */
/** @typedef {import('./math.js').Vec3} Vec3 */
/** @typedef {import('./scene.js').Part} Part */
/** @typedef {{texture: WebGLTexture, wide: number[], half: number[]}} Columns */
/** @typedef {{use: WebGLProgram, at: Record<string, WebGLUniformLocation | null>}} Program */
/** @typedef {{forward: Vec3, left: Vec3, up: Vec3, parallel: boolean, tangents: number[], projection: number[]}} Lens */
/**
 * `tinted` lies over the city in one colour each; `measured` has distances in the place of intensities.
 * @typedef {{city: Part[], brightness: number, tinted: {parts: Part[], tint: string}[], measured: Part[],
 *   scans: import('./player.js').Scan[], lines: Float32Array}} Shown
 */
/** @typedef {{x: number, width: number, height: number}} Region a part of the picture, as high as all of it */
/** @typedef {{width: number, height: number, colour: WebGLTexture | null, depth: WebGLTexture | null, buffer: WebGLFramebuffer | null}} Target */

const WIDTH = 1024;
const FAR = 1500;
/** How far merged discs sink, as a share of their radius: a road line stays on a road whose discs are larger. */
const SINK = 0.15;
/** Farthest depth of a parallel projection. */
const DEEP = 40000;
/** As the shader numbers them. */
export const COLOURINGS = ['class', 'height', 'intensity', 'normal', 'source', 'age', 'distance'];
const DISTANCE = COLOURINGS.indexOf('distance');

export class Renderer {
  // What begin() makes, in the constructor and again after a lost context.
  /** @type {Program} */ discs = /** @type {any} */ (null);
  /** @type {Program} */ lines = /** @type {any} */ (null);
  /** @type {Program} */ picture = /** @type {any} */ (null);
  /** @type {WebGLVertexArrayObject | null} */ nothing = null;
  /** @type {WebGLVertexArrayObject | null} */ strokes = null;
  /** @type {WebGLBuffer | null} */ strokeEnds = null;
  /** @type {WebGLTexture | null} */ colours = null;
  /** @type {WebGLTexture | null} */ values = null;
  /** @type {WebGLTexture | null} */ groundIndex = null;
  /** @type {WebGLTexture | null} */ groundCells = null;
  /** @type {Target | null} */ target = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext('webgl2', { antialias: false, depth: false, alpha: false });
    if (!gl) throw new Error('This browser has no WebGL 2, which the viewer draws with.');
    this.gl = gl;
    this.edges = true;
    this.colouring = 0;
    this.pointPixels = 1.2;  // radius of a return of a scan
    this.distanceScale = 1;  // of an intensity that is a distance, to the ramp
    /** @type {import('./colours.js').Ground | null} */ this.ground = null;
    /** @type {string[]} */ this.valueColours = [];
    this.unknown = '#4d4d4d';
    /** @type {[number, number]} */ this.heights = [0, 1];
    /** @type {{label: number, rgb: string}[]} */ this.classes = [];
    this.unlisted = '#808080';
    this.begin();
  }

  /** Everything that a lost context takes with it. */
  begin() {
    const gl = this.gl;
    this.discs = program(gl, DISC_VERTEX, DISC_FRAGMENT);
    this.picture = program(gl, PICTURE_VERTEX, PICTURE_FRAGMENT);
    this.lines = program(gl, LINE_VERTEX, LINE_FRAGMENT);
    this.nothing = gl.createVertexArray();
    this.strokes = gl.createVertexArray();
    this.strokeEnds = gl.createBuffer();
    gl.bindVertexArray(this.strokes);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.strokeEnds);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    this.colours = gl.createTexture();
    this.values = gl.createTexture();
    this.groundIndex = gl.createTexture();
    this.groundCells = gl.createTexture();
    this.target = null;
    this.setClasses(this.classes, this.unlisted);
    this.setGround(this.ground);
    this.setValues(this.valueColours, this.unknown);
  }

  /** @param {{label: number, rgb: string}[]} classes @param {string} unlisted */
  setClasses(classes, unlisted) {
    this.classes = classes;
    this.unlisted = unlisted;
    this.fillColours(this.colours, classes.map((c) => /** @type {[number, string]} */ ([c.label, c.rgb])), unlisted);
  }

  /** Colours of inputs or generations, by their numbers. @param {string[]} colours @param {string} unknown */
  setValues(colours, unknown) {
    this.valueColours = colours;
    this.unknown = unknown;
    this.fillColours(this.values, colours.map((rgb, i) => /** @type {[number, string]} */ ([i, rgb])), unknown);
  }

  /** One colour for each of 65536 numbers. @param {WebGLTexture | null} texture @param {[number, string][]} colours @param {string} other */
  fillColours(texture, colours, other) {
    const gl = this.gl, pixels = new Uint8Array(4 * 65536);
    const put = (/** @type {number} */ number, /** @type {string} */ rgb) => {
      const value = parseInt(rgb.slice(1), 16);
      pixels.set([value >> 16 & 255, value >> 8 & 255, value & 255, 255], 4 * number);
    };
    for (let number = 0; number < 65536; number++) put(number, other);
    for (const [number, rgb] of colours) put(number, rgb);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 256, 0, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    nearest(gl);
  }

  /** What lies where, or nothing. @param {import('./colours.js').Ground | null} ground */
  setGround(ground) {
    this.ground = ground;
    const gl = this.gl, index = ground?.index ?? { width: 1, height: 1, words: new Uint16Array(1) };
    const cells = ground?.cells ?? { width: 1, height: 1, words: new Uint32Array(1) };
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 2);
    gl.bindTexture(gl.TEXTURE_2D, this.groundIndex);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R16UI, index.width, index.height, 0, gl.RED_INTEGER, gl.UNSIGNED_SHORT, index.words);
    nearest(gl);
    gl.bindTexture(gl.TEXTURE_2D, this.groundCells);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32UI, cells.width, cells.height, 0, gl.RED_INTEGER, gl.UNSIGNED_INT, cells.words);
    nearest(gl);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
  }

  /**
   * The layout of SplatTile: x, y, z, normal of 32 bits, radius, label, intensity of 16, each from a multiple of 64
   * bytes on.
   * @param {Uint32Array} columns @param {number} count @returns {Columns}
   */
  upload(columns, count) {
    const gl = this.gl, wide = [], half = [];
    let words = 0;
    for (let i = 0; i < 4; i++, words += Math.ceil(count / 16) * 16) wide.push(words);
    for (let i = 0; i < 3; i++, words += Math.ceil(count / 32) * 16) half.push(2 * words);
    const texture = /** @type {WebGLTexture} */ (gl.createTexture());
    const rows = Math.floor(columns.length / WIDTH), rest = columns.length % WIDTH;
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.R32UI, WIDTH, rows + (rest ? 1 : 0));
    if (rows) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, WIDTH, rows, gl.RED_INTEGER, gl.UNSIGNED_INT, columns.subarray(0, rows * WIDTH));
    if (rest) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, rows, rest, 1, gl.RED_INTEGER, gl.UNSIGNED_INT, columns.subarray(rows * WIDTH));
    nearest(gl);
    return { texture, wide, half };
  }

  /** @param {unknown} columns */
  drop(columns) { this.gl.deleteTexture(/** @type {Columns} */ (columns).texture); }

  /** A picture of the canvas's size to draw into, with its depths. */
  prepareTarget() {
    const gl = this.gl, { width, height } = this.canvas;
    if (this.target && this.target.width === width && this.target.height === height) return this.target;
    if (this.target) {
      gl.deleteTexture(this.target.colour);
      gl.deleteTexture(this.target.depth);
      gl.deleteFramebuffer(this.target.buffer);
    }
    const colour = gl.createTexture(), depth = gl.createTexture(), buffer = gl.createFramebuffer();
    gl.bindTexture(gl.TEXTURE_2D, colour);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
    nearest(gl);
    gl.bindTexture(gl.TEXTURE_2D, depth);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, width, height);
    nearest(gl);
    gl.bindFramebuffer(gl.FRAMEBUFFER, buffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, colour, 0);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, depth, 0);
    this.target = { width, height, colour, depth, buffer };
    return this.target;
  }

  /**
   * One camera's picture in each region. Returns how many discs of cities were drawn.
   * @param {Camera} camera @param {{region: Region, shown: Shown}[]} panes
   */
  draw(camera, panes) {
    const gl = this.gl, target = this.prepareTarget();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.buffer);
    gl.viewport(0, 0, target.width, target.height);
    gl.clearColor(0, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.SCISSOR_TEST);
    let drawn = 0;
    for (const { region, shown } of panes) {
      gl.viewport(region.x, 0, region.width, region.height);
      gl.scissor(region.x, 0, region.width, region.height);
      drawn += this.drawPane(camera, region, shown, target);
    }
    gl.disable(gl.SCISSOR_TEST);
    return drawn;
  }

  /** @param {Camera} camera @param {Region} region @param {Shown} what @param {Target} target */
  drawPane(camera, region, what, target) {
    const gl = this.gl, { eye } = camera;
    const list = ranges(what.city, eye), measured = ranges(what.measured, eye);
    const over = what.tinted.map(({ parts, tint }) => ({ list: ranges(parts, eye), tint }));
    // The nearest thing decides how much precision depths have.
    const nearest = what.scans.length ? 0 : [list, measured, ...over.map((o) => o.list)].flat().reduce((least, r) => Math.min(least, r.distance), 1000);
    const lens = lensOf(camera, region, nearest);

    gl.bindFramebuffer(gl.FRAMEBUFFER, target.buffer);
    gl.enable(gl.DEPTH_TEST);
    gl.bindVertexArray(this.nothing);
    const { use, at } = this.discs;
    gl.useProgram(use);
    setLens(gl, at, lens);
    gl.uniform1f(at.leastRadius, pixelSize(0.6, lens, region));
    gl.uniform1f(at.farDistance, FAR);
    gl.uniform2f(at.heights, this.heights[0] - eye[2], this.heights[1] - eye[2]);
    const corner = this.ground?.corner ?? [0, 0];
    gl.uniform2f(at.eyeOnGround, eye[0] - corner[0], eye[1] - corner[1]);
    gl.uniform1f(at.valueScale, this.distanceScale);
    // Distances have points of their own, over a city in its usual colours.
    gl.uniform1i(at.colouring, this.colouring === DISTANCE ? 0 : this.colouring);
    gl.uniform1i(at.points, 0);
    [['columns', null], ['classColours', this.colours], ['groundIndex', this.groundIndex], ['groundCells', this.groundCells], ['valueColours', this.values]]
      .forEach(([name, texture], unit) => {
        gl.uniform1i(at[/** @type {string} */ (name)], unit);
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_2D, /** @type {WebGLTexture | null} */ (texture));
      });
    gl.activeTexture(gl.TEXTURE0);
    // What lies over the city must not be hidden by the same discs, or by coarser ones that stand for them.
    gl.uniform1f(at.behind, over.length || measured.length ? 0.02 : 0);
    gl.uniform1f(at.brightness, what.brightness);
    gl.uniform4f(at.tint, 0, 0, 0, 0);
    let drawn = this.drawRanges(list, eye);
    gl.uniform1f(at.behind, 0);
    gl.uniform1f(at.brightness, 1);
    for (const { list: those, tint } of over) {
      const rgb = parseInt(tint.slice(1), 16), linear = [rgb >> 16, rgb >> 8 & 255, rgb & 255].map((v) => (v / 255) ** 2);
      gl.uniform4f(at.tint, linear[0], linear[1], linear[2], 1);
      drawn += this.drawRanges(those, eye);
    }
    gl.uniform4f(at.tint, 0, 0, 0, 0);
    gl.uniform1i(at.points, 1);
    if (measured.length) {
      gl.uniform1i(at.colouring, DISTANCE);
      drawn += this.drawRanges(measured, eye);
      gl.uniform1i(at.colouring, 0);
    }
    this.drawScans(camera, what, lens, region);
    this.finish(target, lens, region);
    return drawn;
  }

  /** @param {ReturnType<typeof ranges>} list @param {Vec3} eye Returns how many discs they have. */
  drawRanges(list, eye) {
    let drawn = 0;
    /** @type {unknown} */ let bound = null;
    for (const { cube, first, count } of list) {
      if (bound !== cube) this.bind(cube, eye);
      bound = cube;
      this.gl.drawArrays(this.gl.TRIANGLES, 3 * first, 3 * count);
      drawn += count;
    }
    return drawn;
  }

  /** The columns that are drawn next. @param {{texture: unknown, unit: number, corner: Vec3, id?: number[]}} of @param {Vec3} eye */
  bind(of, eye) {
    const gl = this.gl, columns = /** @type {Columns} */ (of.texture), { at } = this.discs;
    gl.bindTexture(gl.TEXTURE_2D, columns.texture);
    gl.uniform4iv(at.wideColumns, columns.wide);
    gl.uniform3iv(at.halfColumns, columns.half);
    gl.uniform1f(at.unit, of.unit);
    gl.uniform1f(at.sink, (of.id?.[0] ?? 0) > 0 ? SINK : 0);
    gl.uniform3f(at.corner, of.corner[0] - eye[0], of.corner[1] - eye[1], of.corner[2] - eye[2]);
  }

  /**
   * Returns of scans face the eye and are a few pixels wide; lines are the edges of boxes.
   * @param {Camera} camera @param {Shown} shown @param {Lens} lens @param {Region} region
   */
  drawScans(camera, { scans, lines }, lens, region) {
    const gl = this.gl, { at } = this.discs;
    gl.uniform1f(at.leastRadius, pixelSize(this.pointPixels, lens, region));
    for (const scan of scans) {
      if (!scan.texture) continue;
      this.bind(scan, camera.eye);
      gl.drawArrays(gl.TRIANGLES, 0, 3 * scan.count);
    }
    if (lines.length === 0) return;
    gl.useProgram(this.lines.use);
    setLens(gl, this.lines.at, lens);
    gl.bindVertexArray(this.strokes);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.strokeEnds);
    gl.bufferData(gl.ARRAY_BUFFER, lines, gl.STREAM_DRAW);
    gl.drawArrays(gl.LINES, 0, lines.length / 3);
    gl.bindVertexArray(this.nothing);
  }

  /** Onto the screen, with the sky and the edges. @param {Target} target @param {Lens} lens @param {Region} region */
  finish(target, lens, region) {
    const gl = this.gl, { use, at } = this.picture, { forward, left, up } = lens;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.disable(gl.DEPTH_TEST);
    gl.useProgram(use);
    setLens(gl, at, lens);
    gl.uniform1i(at.picture, 0);
    gl.uniform1i(at.depths, 1);
    gl.uniform2f(at.origin, region.x, 0);
    gl.uniform2f(at.size, region.width, region.height);
    gl.uniform2fv(at.tangents, lens.tangents);
    const [, , slope, offset] = lens.projection;
    gl.uniform2fv(at.depthTerms, lens.parallel ? [slope, offset] : [-slope, offset]);
    gl.uniform1i(at.edges, this.edges ? 1 : 0);
    gl.uniformMatrix3fv(at.worldFromCamera, false,
      [-left[0], -left[1], -left[2], up[0], up[1], up[2], -forward[0], -forward[1], -forward[2]]);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, target.colour);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, target.depth);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, null);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, null);
  }
}

/** @param {Camera} camera @param {Region} region @param {number} nearest metres @returns {Lens} */
function lensOf(camera, region, nearest) {
  const parallel = camera.span > 0, aspect = region.height / region.width;
  const tanX = Math.tan(camera.fov / 2), tangents = [tanX, tanX * aspect];
  if (parallel) {
    const half = camera.span / 2;
    return { ...axes(camera), parallel, tangents, projection: [1 / half, 1 / (half * aspect), 2 / DEEP, -1] };
  }
  const near = Math.max(0.1, nearest * 0.5), far = DEEP;
  return { ...axes(camera), parallel, tangents,
    projection: [1 / tangents[0], 1 / tangents[1], (far + near) / (far - near), -2 * far * near / (far - near)] };
}

/** Of so many pixels: in a parallel projection in metres, else at a distance of one metre. @param {number} pixels @param {Lens} lens @param {Region} region */
function pixelSize(pixels, lens, region) {
  return pixels * 2 / lens.projection[0] / region.width;
}

/** @param {WebGL2RenderingContext} gl @param {Program['at']} at @param {Lens} lens */
function setLens(gl, at, { forward, left, up, parallel, projection }) {
  gl.uniformMatrix3fv(at.cameraFromWorld, false,
    [-left[0], up[0], -forward[0], -left[1], up[1], -forward[1], -left[2], up[2], -forward[2]]);
  gl.uniform4fv(at.projection, projection);
  gl.uniform1i(at.parallel, parallel ? 1 : 0);
  gl.uniform3fv(at.forward, forward);
}

/**
 * Discs that follow each other in their cube, drawn at once; near cubes first, so that they hide the others.
 * @param {Part[]} parts @param {Vec3} eye
 */
function ranges(parts, eye) {
  /** @type {Map<import('./scene.js').Cube, import('./scene.js').Piece[]>} */ const cubes = new Map();
  for (const part of parts) cubes.set(part.cube, [...(cubes.get(part.cube) ?? []), ...part.pieces]);
  const list = [];
  for (const [cube, pieces] of cubes) {
    if (!cube.texture) continue;
    pieces.sort((a, b) => a.first - b.first);
    /** @type {{cube: typeof cube, first: number, count: number, distance: number} | null} */ let last = null;
    for (const piece of pieces) {
      const min = /** @type {Vec3} */ ([0, 1, 2].map((a) => cube.corner[a] + piece.min[a] - eye[a]));
      const max = /** @type {Vec3} */ ([0, 1, 2].map((a) => cube.corner[a] + piece.max[a] - eye[a]));
      const distance = boxDistance(min, max);
      if (last && last.first + last.count === piece.first) {
        last.count += piece.count;
        last.distance = Math.min(last.distance, distance);
      } else list.push(last = { cube, first: piece.first, count: piece.count, distance });
    }
  }
  return list.sort((a, b) => a.distance - b.distance);
}

/** @param {WebGL2RenderingContext} gl */
function nearest(gl) {
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
}

/** @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment @returns {Program} */
export function program(gl, vertex, fragment) {
  const use = /** @type {WebGLProgram} */ (gl.createProgram());
  for (const [kind, text] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]])) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost())
      throw new Error(`A program of the GPU does not compile: ${gl.getShaderInfoLog(shader)}`);
    gl.attachShader(use, shader);
  }
  gl.linkProgram(use);
  /** @type {Record<string, WebGLUniformLocation | null>} */ const at = {};
  const uniforms = gl.getProgramParameter(use, gl.ACTIVE_UNIFORMS) ?? 0;
  for (let i = 0; i < uniforms; i++) {
    const name = gl.getActiveUniform(use, i)?.name ?? '';
    at[name] = gl.getUniformLocation(use, name);
  }
  return { use, at };
}
