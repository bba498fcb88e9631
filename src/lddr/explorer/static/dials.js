// How a latent is turned: through a list of values, or along a range. A place is where its slider stands.
import { shown } from "./dom.js";
import { path } from "./plot.js";

export const HEIGHT = 30; // of the posterior's picture

export function dialOf(latent) {
  return latent.range ? new RangeDial(latent) : new ListDial(latent);
}

// A place is the number of a value.
class ListDial {
  legend = "Bars: the posterior over the categories.";
  rounds = true;
  step = 1;
  low = 0;

  constructor({ values, categories, of }) {
    Object.assign(this, { values, categories, of, high: values.length - 1, places: [...values.keys()] });
    this.middle = Math.floor(values.length / 2);
  }

  valueAt(place) {
    return this.values[place];
  }

  categoryAt(place) {
    return this.categories[place];
  }

  tell(place) {
    return `category ${this.categories[place]} of ${this.of}`;
  }

  label(place) {
    return String(this.categories[place]);
  }

  random() {
    return Math.floor(Math.random() * this.values.length);
  }

  // Where the posterior of an image is highest.
  home({ probabilities }, number) {
    return probabilities[number].indexOf(Math.max(...probabilities[number]));
  }

  // Bars around the whole numbers, the highest as high as the picture.
  outline({ probabilities }, number) {
    const heights = probabilities[number];
    const top = Math.max(...heights);
    const half = Math.min(0.4, 0.016 * (heights.length - 1 || 1)); // few categories have narrow bars too
    return heights.map((height, place) => `M${place - half} ${HEIGHT}v${(-height / top) * HEIGHT}h${2 * half}V${HEIGHT}z`).join("");
  }
}

// A place is the value itself.
class RangeDial {
  legend = "The bell: the posterior.";
  rounds = false;
  step = 0.05;
  middle = 0;

  constructor({ values, range: [low, high], deviation }) {
    Object.assign(this, { low, high, deviation, places: values });
  }

  valueAt(place) {
    return place;
  }

  categoryAt() {
    return null;
  }

  tell(place) {
    return shown(place);
  }

  label(place) {
    return place.toFixed(1);
  }

  random() {
    const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
    return Math.min(Math.max(normal * this.deviation, this.low), this.high);
  }

  home({ values }, number) {
    return values[number];
  }

  outline({ values, deviations }, number) {
    const [mean, width] = [values[number], Math.max(deviations[number], 0.02)];
    const places = Array.from({ length: 121 }, (_, step) => this.low + ((this.high - this.low) * step) / 120);
    places.push(mean); // a narrow bell lies between two of the others
    places.sort((one, other) => one - other);
    const points = places.map((place) => [place - this.low, HEIGHT - HEIGHT * Math.exp(-0.5 * ((place - mean) / width) ** 2)]);
    return `${path([[0, HEIGHT], ...points, [this.high - this.low, HEIGHT]])}z`;
  }
}
