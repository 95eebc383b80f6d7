// Vectors, cameras and boxes. World coordinates are doubles; what goes to the GPU is relative to the eye.

/** @typedef {[number, number, number]} Vec3 */

/** @type {(a: Vec3, b: Vec3) => Vec3} */
export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
/** @type {(a: Vec3, b: Vec3) => Vec3} */
export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
/** @type {(a: Vec3, s: number) => Vec3} */
export const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
/** @type {(a: Vec3, b: Vec3) => number} */
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
/** @type {(a: Vec3, b: Vec3) => Vec3} */
export const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
/** @type {(a: Vec3) => number} */
export const length = (a) => Math.hypot(a[0], a[1], a[2]);

/**
 * A camera as `citysplat render --pose` has it: yaw 0 looks east, positive pitch looks up; radians. With a `span`, in
 * metres, it is a parallel projection that is so wide, and what lies behind the eye is cut away.
 * @typedef {{eye: Vec3, yaw: number, pitch: number, fov: number, span: number}} Camera
 */
/** @typedef {[number, number, number, number]} Plane normal, and what is added */

/** @param {Camera} camera */
export function axes(camera) {
  const cy = Math.cos(camera.yaw), sy = Math.sin(camera.yaw);
  const cp = Math.cos(camera.pitch), sp = Math.sin(camera.pitch);
  /** @type {Vec3} */ const forward = [cp * cy, cp * sy, sp];
  /** @type {Vec3} */ const left = [-sy, cy, 0];
  return { forward, left, up: cross(forward, left) };
}

/**
 * The ray through a point of the picture, in pixels from its top left corner.
 * @param {Camera} camera @param {{width: number, height: number}} size @param {number} px @param {number} py
 * @returns {{origin: Vec3, direction: Vec3}}
 */
export function rayThrough(camera, size, px, py) {
  const { forward, left, up } = axes(camera);
  const across = size.width / 2 - px, above = size.height / 2 - py;
  if (camera.span > 0) {
    const metres = camera.span / size.width;
    return { origin: add(camera.eye, add(scale(left, across * metres), scale(up, above * metres))), direction: forward };
  }
  const d = add(add(scale(forward, focalLength(camera, size)), scale(left, across)), scale(up, above));
  return { origin: camera.eye, direction: scale(d, 1 / length(d)) };
}

/** Pixels. @param {Camera} camera @param {{width: number}} size */
export const focalLength = (camera, size) => size.width / 2 / Math.tan(camera.fov / 2);

/** How many pixels a metre has at a distance. @param {Camera} camera @param {{width: number}} size @param {number} distance */
export const pixelsPerMetre = (camera, size, distance) =>
  camera.span > 0 ? size.width / camera.span : focalLength(camera, size) / Math.max(distance, 1);

/**
 * The planes around what a camera sees, pointing inwards; relative to the eye.
 * @param {Camera} camera @param {{width: number, height: number}} size @returns {Plane[]}
 */
export function sidePlanes(camera, size) {
  const { forward, left, up } = axes(camera);
  if (camera.span > 0) {
    const x = camera.span / 2, y = x * size.height / size.width;
    return [[...left, x], [...scale(left, -1), x], [...up, y], [...scale(up, -1), y], [...forward, 0]];
  }
  const x = Math.tan(camera.fov / 2), y = x * size.height / size.width;
  return [[...add(scale(forward, x), left), 0], [...sub(scale(forward, x), left), 0],
    [...add(scale(forward, y), up), 0], [...sub(scale(forward, y), up), 0]];
}

/**
 * Whether a box may be seen; min and max are relative to the eye.
 * @param {Plane[]} planes @param {Vec3} min @param {Vec3} max
 */
export function mayBeSeen(planes, min, max) {
  for (const n of planes) {
    const x = n[0] > 0 ? max[0] : min[0], y = n[1] > 0 ? max[1] : min[1], z = n[2] > 0 ? max[2] : min[2];
    if (n[0] * x + n[1] * y + n[2] * z + n[3] < 0) return false;
  }
  return true;
}

/** Distance of a box from the eye. @param {Vec3} min @param {Vec3} max relative to the eye */
export function boxDistance(min, max) {
  let sum = 0;
  for (let a = 0; a < 3; a++) {
    const d = Math.max(min[a], 0, -max[a]);
    sum += d * d;
  }
  return Math.sqrt(sum);
}
