// The panel of the player: slider, step, speed, which sensor, and how the city is shown beside the scans.

import { byId, count, say } from './panel.js';

/** @typedef {import('./player.js').Player} Player */

const CITY = ['shown', 'dimmed', 'hidden'];

export class Playback {
  /** @param {Player} player @param {{folder: string}} facts @param {() => void} changed */
  constructor(player, facts, changed) {
    this.player = player;
    this.riding = false;
    this.city = 'dimmed';
    this.changed = changed;
    if (player.sensors.length === 0) return;
    byId('player', HTMLElement).hidden = false;
    say('scans-of', `${facts.folder}: ${player.sensors.map((s) => `${s.name} (${count(s.times.length)} scans)`).join(', ')}`);
    const list = byId('sensor', HTMLSelectElement);
    player.sensors.forEach((s, i) => list.append(new Option(s.name, String(i))));
    list.onchange = () => { player.choose(Number(list.value)); };
    byId('time', HTMLInputElement).oninput = (e) => player.goTo(Number(/** @type {HTMLInputElement} */ (e.target).value));
    byId('earlier', HTMLButtonElement).onclick = () => this.step(-1);
    byId('later', HTMLButtonElement).onclick = () => this.step(1);
    byId('play', HTMLButtonElement).onclick = () => this.toggle();
    byId('speed', HTMLSelectElement).onchange = (e) => { player.speed = Number(/** @type {HTMLSelectElement} */ (e.target).value); };
    byId('ride', HTMLInputElement).onchange = (e) => this.ride(/** @type {HTMLInputElement} */ (e.target).checked);
    byId('behind', HTMLSelectElement).onchange = (e) => this.showCity(/** @type {HTMLSelectElement} */ (e.target).value);
  }

  get here() { return this.player.sensors.length > 0; }
  /** How bright the city is: 0 is not drawn. */
  get brightness() { return !this.here || this.city === 'shown' ? 1 : this.city === 'dimmed' ? 0.45 : 0; }

  toggle() { if (this.here) this.player.play(!this.player.playing); }
  /** @param {number} by */
  step(by) {
    if (!this.here) return;
    this.player.playing = false;
    this.player.goTo(this.player.at + by);
  }
  /** @param {boolean} on */
  ride(on) { if (this.here) { this.riding = on; byId('ride', HTMLInputElement).checked = on; this.changed(); } }
  /** @param {string} how */
  showCity(how) {
    this.city = CITY.includes(how) ? how : 'dimmed';
    byId('behind', HTMLSelectElement).value = this.city;
    this.changed();
  }
  nextCity() { this.showCity(CITY[(CITY.indexOf(this.city) + 1) % CITY.length]); }

  tell() {
    if (!this.here) return;
    const { player } = this, slider = byId('time', HTMLInputElement);
    slider.max = String(player.times.length - 1);
    slider.value = String(player.at);
    slider.setAttribute('aria-valuetext', `${player.times[player.at]} s`);
    byId('sensor', HTMLSelectElement).value = String(player.only);
    byId('play', HTMLButtonElement).textContent = player.playing ? 'pause (P)' : 'play (P)';
    const shown = player.layers();
    say('scan', player.trouble ?? `${player.times[player.at].toFixed(3)} s, ${player.at + 1} of ${count(player.times.length)}: ` +
      shown.map((s) => `${player.sensors[s.sensor].name} ${s.number}, ${count(s.count)} returns${s.incomplete ? ' within 1 km' : ''}` +
        (s.boxes.length ? `, ${s.boxes.length} boxes (${[...new Set(s.boxes.map((b) => b.class))].join(', ')})` : '')).join('; ') +
      (player.settled() ? '' : ', loading …'));
  }

  /** Into the address. @param {URLSearchParams} view */
  remember(view) {
    if (!this.here) return;
    view.set('k', String(this.player.times[this.player.at]));
    view.set('n', String(this.player.only));
    view.set('i', this.city);
    view.set('y', this.riding ? '1' : '0');
  }
  /** From the address. @param {URLSearchParams} from */
  restore(from) {
    if (!this.here) return;
    const only = Number(from.get('n') ?? -1), time = Number(from.get('k') ?? NaN);
    this.player.choose(Number.isInteger(only) ? only : -1);
    if (Number.isFinite(time)) this.player.seek(time);
    this.showCity(from.get('i') ?? 'dimmed');
    this.ride(from.get('y') === '1');
  }
}
