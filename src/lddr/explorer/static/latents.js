// One latent: its posterior, a slider over its values, and a picture of each.
import { h, s, shown } from "./dom.js";
import { path } from "./plot.js";

const HEIGHT = 30; // of the posterior's picture

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
      { class: latent.active ? "latent" : "latent inactive", "data-latent": latent.number },
      h("div", { class: "name" }, ...this.title(), this.output),
      h("div", { class: "dial" }, this.posterior, this.slider),
      h("div", { class: "buttons" }, back, this.button),
      this.strip,
    );
    this.reset(); // at rest until there is an image
  }

  title() {
    const { number, factor, share, kl, active } = this.latent;
    const about = kl === null ? null : `KL ${shown(kl)} nats, mean over up to 64 images`;
    const parts = [h("span", { title: about }, `latent ${number}`)];
    if (factor) parts.push(h("span", { class: "label", title: `encodes ${Math.round(share * 100)} % of the entropy of ${factor}` }, `→ ${factor}`, h("small", {}, ` ${Math.round(share * 100)} %`)));
    if (!active) parts.push(h("span", { class: "badge", title: "its code is almost the same for all images" }, "inactive"));
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
    this.update();
  }

  pick(place, isByUser = false) {
    this.place = place;
    this.value = this.dial.valueAt(place);
    this.update();
    if (isByUser) this.moved();
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

  update() {
    const { low, high, places } = this.dial;
    const place = this.place ?? this.home;
    const text = this.place === null ? `mean ${shown(this.mean)}` : this.dial.text(place);
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
    this.update();
  }

  open(isOpen) {
    this.strip.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", isOpen);
  }
}

// How a slider works: through a list of values, or along a range. A place is a position of the slider.
const dialOf = (latent) => (latent.range ? rangeDial(latent) : listDial(latent));

// A place is the number of a value.
const listDial = ({ values, categories, of }) => ({
  legend: "Bars: the posterior over the categories.",
  rounds: true,
  low: 0,
  high: values.length - 1,
  step: 1,
  middle: Math.floor(values.length / 2),
  places: [...values.keys()],
  valueAt: (place) => values[place],
  categoryAt: (place) => categories[place],
  text: (place) => `category ${categories[place]} of ${of}`,
  label: (place) => String(categories[place]),
  random: () => Math.floor(Math.random() * values.length),
  home: ({ probabilities }, number) => probabilities[number].indexOf(Math.max(...probabilities[number])),
  outline: ({ probabilities }, number) => bars(probabilities[number]),
});

// A place is the value itself.
const rangeDial = ({ values, range: [low, high], deviation }) => ({
  legend: "The bell: the posterior.",
  rounds: false,
  low,
  high,
  step: 0.05,
  middle: 0,
  places: values,
  valueAt: (place) => place,
  categoryAt: () => null,
  text: shown,
  label: (place) => place.toFixed(1),
  random: () => Math.min(Math.max(normal() * deviation, low), high),
  home: (seen, number) => seen.values[number],
  outline: (seen, number) => bell(seen.values[number], Math.max(seen.deviations[number], 0.02), low, high),
});

// Around the whole numbers, the highest as high as the picture.
function bars(heights) {
  const top = Math.max(...heights);
  const half = Math.min(0.4, 0.016 * (heights.length - 1 || 1)); // few categories have narrow bars too
  return heights.map((height, place) => `M${place - half} ${HEIGHT}v${(-height / top) * HEIGHT}h${2 * half}V${HEIGHT}z`).join("");
}

function bell(mean, width, low, high) {
  const places = Array.from({ length: 121 }, (_, step) => low + ((high - low) * step) / 120);
  places.push(mean); // a narrow bell lies between two of the others
  places.sort((one, other) => one - other);
  const points = places.map((place) => [place - low, HEIGHT - HEIGHT * Math.exp(-0.5 * ((place - mean) / width) ** 2)]);
  return `${path([[0, HEIGHT], ...points, [high - low, HEIGHT]])}z`;
}

function normal() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}
