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
 * A pinhole camera as `citysplat render --pose` has it: yaw 0 looks east, positive pitch looks up; radians.
 * @typedef {{eye: Vec3, yaw: number, pitch: number, fov: number}} Camera
 */

/** @param {Camera} camera */
export function axes(camera) {
  const cy = Math.cos(camera.yaw), sy = Math.sin(camera.yaw);
  const cp = Math.cos(camera.pitch), sp = Math.sin(camera.pitch);
  /** @type {Vec3} */ const forward = [cp * cy, cp * sy, sp];
  /** @type {Vec3} */ const left = [-sy, cy, 0];
  return { forward, left, up: cross(forward, left) };
}

/**
 * The direction through a point of the picture, in pixels from its top left corner.
 * @param {Camera} camera @param {{width: number, height: number}} size @param {number} px @param {number} py
 * @returns {Vec3}
 */
export function direction(camera, size, px, py) {
  const { forward, left, up } = axes(camera);
  const focal = focalLength(camera, size);
  const d = add(add(scale(forward, focal), scale(left, size.width / 2 - px)), scale(up, size.height / 2 - py));
  return scale(d, 1 / length(d));
}

/** Pixels. @param {Camera} camera @param {{width: number}} size */
export const focalLength = (camera, size) => size.width / 2 / Math.tan(camera.fov / 2);

/**
 * The four side planes of what a camera sees, through the eye, pointing inwards.
 * @param {Camera} camera @param {{width: number, height: number}} size @returns {Vec3[]}
 */
export function sidePlanes(camera, size) {
  const { forward, left, up } = axes(camera);
  const x = Math.tan(camera.fov / 2), y = x * size.height / size.width;
  return [add(scale(forward, x), left), sub(scale(forward, x), left),
    add(scale(forward, y), up), sub(scale(forward, y), up)];
}

/**
 * Whether a box may be seen; min and max are relative to the eye.
 * @param {Vec3[]} planes @param {Vec3} min @param {Vec3} max
 */
export function mayBeSeen(planes, min, max) {
  for (const n of planes) {
    const x = n[0] > 0 ? max[0] : min[0], y = n[1] > 0 ? max[1] : min[1], z = n[2] > 0 ? max[2] : min[2];
    if (n[0] * x + n[1] * y + n[2] * z < 0) return false;
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
