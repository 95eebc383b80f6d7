// Elements of the page by name, and texts in them. What a city says is always set as text.

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
