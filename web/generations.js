// Which generation is shown, and with which it is compared. Another choice is another address, and the page begins
// anew with it: nothing of one generation can be left over in the picture of another.

import { byId, count, say } from './panel.js';
import { Scene } from './scene.js';

/** @typedef {{generation: number, created: string, note: string}} Generation */
/** @typedef {{generation: number, levels_key: string, roots: number[][]}} Side */
/** @typedef {{tile: string, kind: string, only_before: number, only_after: number, problem: string, box: number[]}} Change */
/** @typedef {{before: Side, after: Side, only_before: number, only_after: number, tiles: Change[]}} Diff */
/** @typedef {(path: string) => Promise<Response>} Ask */

/** What only the earlier and what only the later generation has; apart for every kind of colour blindness. */
export const ONLY_BEFORE = '#e69f00', ONLY_AFTER = '#56b4e9';

/**
 * The city of an address. A generation that is gone is replaced by the one that the server began with.
 * @param {URLSearchParams} from @param {Ask} ask
 * @returns {Promise<{city: any, diff: Diff | null, other: any, word: string}>} `other` is the earlier city where both are shown
 */
export async function openGeneration(from, ask) {
  const wanted = from.get('g') ?? '', since = from.get('q') ?? '';
  let word = '', city;
  try {
    city = await (await ask(/^\d{1,15}$/.test(wanted) ? `/api/city/${wanted}` : '/api/city')).json();
  } catch (e) {
    if (!String(e).includes('not retained')) throw e;
    city = await (await ask('/api/city')).json();
    word = `The address is of generation ${wanted}, which is not retained any more; this is generation ${city.generation}.`;
  }
  /** @type {Diff | null} */ let diff = null;
  if (/^\d{1,15}$/.test(since) && since !== String(city.generation)) {
    say('message', `Comparing with generation ${since} …`);
    try {
      diff = await (await ask(`/api/diff/${since}/${city.generation}`)).json();
    } catch (e) {
      if (!String(e).includes('not retained')) throw e;
      word = `Generation ${since} is not retained any more.`;
    }
  }
  const other = diff && from.get('w') === 'side' ? await (await ask(`/api/city/${diff.before.generation}`)).json() : null;
  return { city, diff, other, word };
}

/**
 * A scene of cubes with this key. The server closes what was not asked for in a while: then it is opened again.
 * @param {{roots: number[][], levels_key: string}} of @param {string} opener path that opens it @param {Ask} ask
 * @param {ConstructorParameters<typeof Scene>[2]} store
 */
export function sceneOf(of, opener, ask, store) {
  return new Scene(of, async (id) => {
    const path = `/api/cube/${of.levels_key}/${id.join('/')}`;
    try {
      return await (await ask(path)).arrayBuffer();
    } catch (e) {
      if (!String(e).includes('nothing at this address')) throw e;
      await ask(opener);
      return (await ask(path)).arrayBuffer();
    }
  }, store);
}

export class Generations {
  /** @param {any} city @param {Diff | null} diff @param {boolean} side both beside each other @param {Ask} ask @param {() => void} leave writes the address */
  constructor(city, diff, side, ask, leave) {
    this.shown = String(city.generation);
    this.side = side;
    this.since = diff ? String(diff.before.generation) : '';
    this.ask = ask;
    this.leave = leave;
    /** @type {Generation[]} */ this.list = [];
    const choose = (/** @type {string} */ shown, /** @type {string} */ since) => {
      this.shown = shown;
      this.since = since === shown ? '' : since;
      leave();
      location.reload();
    };
    const how = byId('how', HTMLSelectElement);
    how.value = side ? 'side' : 'difference';
    how.disabled = !diff;
    how.onchange = () => this.showBeside(how.value === 'side');
    byId('generation', HTMLSelectElement).onchange = (e) => choose(/** @type {HTMLSelectElement} */ (e.target).value, this.since);
    byId('since', HTMLSelectElement).onchange = (e) => choose(this.shown, /** @type {HTMLSelectElement} */ (e.target).value);
    this.fill(city.history);
    if (diff) this.tellDiff(diff);
  }

  /** Both cities beside each other, or what differs in one picture. @param {boolean} side */
  showBeside(side) {
    if (!this.since) return;
    this.side = side;
    this.leave();
    location.reload();
  }

  /** @param {Generation[]} list */
  fill(list) {
    this.list = list;
    const words = (/** @type {Generation} */ g) => `${g.generation}: ${g.created}, ${g.note}`;
    // One that is shown stays in the list when it is retained no longer: the server keeps it open.
    const all = list.some((g) => String(g.generation) === this.shown) ? list : [{ generation: Number(this.shown), created: 'not retained any more', note: '' }, ...list];
    byId('generation', HTMLSelectElement).replaceChildren(...all.map((g) => new Option(words(g), String(g.generation))));
    byId('generation', HTMLSelectElement).value = this.shown;
    byId('since', HTMLSelectElement).replaceChildren(new Option('nothing', ''), ...all.filter((g) => String(g.generation) !== this.shown).map((g) => new Option(words(g), String(g.generation))));
    byId('since', HTMLSelectElement).value = this.since;
  }

  /** Whether something was published or removed since. */
  async look() {
    const { generations } = await (await this.ask('/api/generations')).json();
    if (JSON.stringify(generations) === JSON.stringify(this.list)) return;
    const newest = Math.max(0, ...this.list.map((g) => g.generation));
    const published = generations.filter((/** @type {Generation} */ g) => g.generation > newest);
    if (published.length) say('published', `Generation ${published.map((/** @type {Generation} */ g) => g.generation).join(', ')} was published; this is still generation ${this.shown}.`);
    this.fill(generations);
  }

  /** @param {Diff} diff */
  tellDiff(diff) {
    const kinds = ['changed', 'added', 'removed'].map((kind) => `${diff.tiles.filter((t) => t.kind === kind).length} ${kind}`);
    const bad = diff.tiles.filter((t) => t.problem);
    say('diff', `Only in generation ${diff.before.generation} (orange): ${count(diff.only_before)} splats. Only in generation ` +
      `${diff.after.generation} (blue): ${count(diff.only_after)} splats. Tiles: ${kinds.join(', ')}.` +
      (bad.length ? ` Not compared: ${bad.slice(0, 5).map((t) => t.tile).join(', ')}.` : ''));
  }
}
