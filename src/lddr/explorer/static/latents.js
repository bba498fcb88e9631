// One latent: its posterior, a slider over its values, and a picture of each.
import { dialOf, HEIGHT } from "./dials.js";
import { h, s, shown } from "./dom.js";

export function latentName({ number, factor }) {
  return factor ? `latent ${number} → ${factor}` : `latent ${number}`;
}

export class LatentRow {
  // `moved` is called when the user has changed the value, `traverse` when all values are wanted.
  constructor(latent, { moved, traverse }) {
    const dial = dialOf(latent);
    Object.assign(this, { latent, dial, moved, name: latentName(latent), place: null, home: dial.middle, mean: 0, value: 0 });
    const range = { min: dial.low, max: dial.high, step: dial.step };
    this.slider = h("input", { type: "range", ...range, "aria-label": this.name, oninput: () => this.pick(Number(this.slider.value), true) });
    this.output = h("output");
    this.outline = s("path", { class: "bars" });
    this.mark = s("line", { y1: 0, y2: HEIGHT, class: "mark", "vector-effect": "non-scaling-stroke" });
    const box = `0 0 ${dial.high - dial.low || 1} ${HEIGHT}`;
    this.posterior = s("svg", { viewBox: box, preserveAspectRatio: "none", class: "posterior", "aria-hidden": true }, this.outline, this.mark);
    this.strip = h("div", { class: "strip", hidden: true });
    this.button = h("button", { type: "button", "aria-expanded": "false", onclick: () => traverse(this) }, "Traverse");
    const back = h("button", { type: "button", "aria-label": `Reset ${this.name}`, title: "Back to the posterior’s mean", onclick: () => (this.reset(), moved()) }, "↺");
    this.element = h(
      "li",
      { class: latent.awake ? "latent" : "latent asleep", "data-latent": latent.number },
      h("div", { class: "name" }, ...this.title(), this.output),
      h("div", { class: "dial" }, this.posterior, this.slider),
      h("div", { class: "buttons" }, back, this.button),
      this.strip,
    );
    this.reset(); // at rest until there is an image
  }

  title() {
    const { number, factor, share, kl, awake } = this.latent;
    const about = kl === null ? null : `KL ${shown(kl)} nats, mean over 64 images`;
    const parts = [h("span", { title: about }, `latent ${number}`)];
    if (factor) parts.push(h("span", { class: "label", title: `tells ${Math.round(share * 100)} % of the entropy of ${factor}` }, `→ ${factor}`, h("small", {}, ` ${Math.round(share * 100)} %`)));
    if (!awake) parts.push(h("span", { class: "badge", title: "next to no image changes it" }, "inactive"));
    return parts;
  }

  // What the encoder says about an image.
  see(seen) {
    const { number } = this.latent;
    this.mean = seen.values[number];
    this.home = this.dial.home(seen, number);
    this.outline.setAttribute("d", this.dial.outline(seen, number));
    this.reset();
  }

  reset() {
    this.place = null;
    this.value = this.mean;
    this.tell();
  }

  pick(place, tellOthers = false) {
    this.place = place;
    this.value = this.dial.valueAt(place);
    this.tell();
    if (tellOthers) this.moved();
  }

  round() {
    if (this.dial.rounds) this.pick(this.home);
  }

  random() {
    this.pick(this.dial.random());
  }

  get category() {
    return this.place === null ? null : this.dial.categoryAt(this.place);
  }

  tell() {
    const { low, high, places } = this.dial;
    const place = this.place ?? this.home;
    const text = this.place === null ? `mean ${shown(this.mean)}` : this.dial.tell(place);
    this.output.textContent = text;
    this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", text);
    for (const end of ["x1", "x2"]) this.mark.setAttribute(end, Math.min(Math.max(place, low), high) - low);
    [...this.strip.children].forEach((cell, number) => cell.setAttribute("aria-pressed", places[number] === place));
  }

  // The picture of every value, to choose one by looking.
  show(pictures) {
    const cells = pictures.map((picture, number) => {
      const place = this.dial.places[number];
      const text = this.dial.label(place);
      return h("button", { type: "button", "aria-label": `${this.name}: ${text}`, onclick: () => this.pick(place, true) }, picture, h("small", {}, text));
    });
    this.strip.replaceChildren(...cells);
    this.tell();
  }

  open(isOpen) {
    this.strip.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", isOpen);
  }
}
