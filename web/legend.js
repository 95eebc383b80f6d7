// What the colours mean.

import { ONLY_AFTER, ONLY_BEFORE } from './generations.js';

/** Colours of a value from low to high; the shader has the same (shaders.js). */
export const RAMP = ['#352a6b', '#2f5c8f', '#25848e', '#3dab79', '#9bcb4a', '#fbe33a'];

/**
 * Colour and text of each row.
 * @param {string} colouring @param {any} city as /api/city tells it
 * @param {{scans: boolean, diff: import('./generations.js').Diff | null}} beside what is drawn over it
 * @returns {[string, string][]}
 */
export function legendRows(colouring, city, { scans, diff }) {
  const rows = cityRows(colouring, city, scans);
  if (diff) rows.unshift([ONLY_BEFORE, `only in generation ${diff.before.generation}`], [ONLY_AFTER, `only in generation ${diff.after.generation}`]);
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
