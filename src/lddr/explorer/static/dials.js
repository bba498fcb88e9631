// How a latent is turned: through a list of values, or along a range. A place is where its slider stands.
import { shown } from "./dom.js";
import { path } from "./plot.js";

export const HEIGHT = 30; // of the posterior's picture

export const dialOf = (latent) => (latent.range ? rangeDial(latent) : listDial(latent));

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
  tell: (place) => `category ${categories[place]} of ${of}`,
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
  tell: shown,
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
