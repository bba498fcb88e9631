// One latent: its posterior as bars or a bell, and a slider over its values.
import { h, s, shown } from "./dom.js";
import { path } from "./plot.js";

const [LOW, HIGH, STEP] = [-3, 3, 0.05]; // of a Gaussian latent
const HEIGHT = 30; // of the posterior's picture

export class LatentRow {
  // `moved` is called when the user has changed the value, `traverse` when all values are wanted.
  constructor(latent, discrete, { moved, traverse }) {
    Object.assign(this, { latent, discrete, value: 0, mean: 0, place: null });
    this.last = discrete ? latent.values.length - 1 : HIGH;
    const range = discrete ? { min: 0, max: this.last, step: 1 } : { min: LOW, max: HIGH, step: STEP };
    this.slider = h("input", { type: "range", ...range, "aria-label": this.name, oninput: () => this.pick(Number(this.slider.value), moved) });
    this.output = h("output");
    const span = discrete ? this.last || 1 : HIGH - LOW;
    this.bars = s("path", { class: "bars" });
    this.mark = s("line", { y1: 0, y2: HEIGHT, class: "mark", "vector-effect": "non-scaling-stroke" });
    this.posterior = s("svg", { viewBox: `0 0 ${span} ${HEIGHT}`, preserveAspectRatio: "none", class: "posterior", "aria-hidden": true }, this.bars, this.mark);
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
  }

  get name() {
    const { number, factor } = this.latent;
    return factor ? `latent ${number} → ${factor}` : `latent ${number}`;
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
  see({ values, deviations, probabilities }) {
    const { number } = this.latent;
    this.mean = values[number];
    this.best = probabilities ? probabilities[number].indexOf(Math.max(...probabilities[number])) : null;
    this.bars.setAttribute("d", probabilities ? barPath(probabilities[number]) : bell(this.mean, deviations[number]));
    this.reset();
  }

  reset() {
    this.place = null;
    this.value = this.mean;
    this.slider.value = this.discrete ? this.best : this.mean;
    this.tell();
  }

  // A place on the slider: the number of an active category, or the value itself.
  pick(place, moved) {
    this.place = place;
    this.value = this.discrete ? this.latent.values[place] : place;
    this.slider.value = place;
    this.tell();
    moved?.();
  }

  round() {
    if (this.discrete) this.pick(this.best);
  }

  random() {
    const bell = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
    this.pick(this.discrete ? Math.floor(Math.random() * this.latent.values.length) : Math.min(Math.max(bell, LOW), HIGH));
  }

  get category() {
    return this.discrete && this.place !== null ? this.latent.categories[this.place] : null;
  }

  tell() {
    const { values, categories, of } = this.latent;
    const chosen = this.discrete ? `category ${categories[this.place]} of ${of}` : shown(this.value);
    const text = this.place === null ? `mean ${shown(this.mean)}` : chosen;
    this.output.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    const across = this.discrete ? Number(this.slider.value) : Math.min(Math.max(this.value, LOW), HIGH) - LOW;
    this.mark.setAttribute("x1", across);
    this.mark.setAttribute("x2", across);
    for (const cell of this.strip.children) cell.setAttribute("aria-pressed", this.discrete ? Number(cell.dataset.place) === Number(this.slider.value) : values[cell.dataset.place] === this.value);
  }

  // The picture of every value, to choose one by looking.
  show(pieces, moved) {
    const cells = pieces.map((piece, place) => {
      const text = this.discrete ? String(this.latent.categories[place]) : this.latent.values[place].toFixed(1);
      const pick = () => this.pick(this.discrete ? place : this.latent.values[place], moved);
      return h("button", { type: "button", "data-place": place, "aria-label": `${this.name}: ${text}`, onclick: pick }, piece, h("small", {}, text));
    });
    this.strip.replaceChildren(...cells);
    this.tell();
  }

  open(isOpen) {
    this.strip.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", isOpen);
  }
}

// Bars around the whole numbers, the highest as high as the picture.
function barPath(probabilities) {
  const top = Math.max(...probabilities);
  const half = Math.min(0.4, 0.016 * (probabilities.length - 1 || 1)); // few categories have narrow bars too
  return probabilities
    .map((probability, place) => `M${place - half} ${HEIGHT}v${(-probability / top) * HEIGHT}h${2 * half}V${HEIGHT}z`)
    .join("");
}

function bell(mean, deviation) {
  const points = [];
  const width = Math.max(deviation, 0.02);
  for (let place = 0; place <= 120; place += 1) {
    const value = LOW + ((HIGH - LOW) * place) / 120;
    points.push([value - LOW, HEIGHT - HEIGHT * Math.exp(-0.5 * ((value - mean) / width) ** 2)]);
  }
  points.push([mean - LOW, 0]); // a narrow bell lies between two of the points
  points.sort((one, other) => one[0] - other[0]);
  return `${path([[0, HEIGHT], ...points, [HIGH - LOW, HEIGHT]])}z`;
}
