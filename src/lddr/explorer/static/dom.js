// Elements from plain values: text is always text, so that no name of a run can become markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function option(value, text, selected) {
  return h("option", { value, selected }, text ?? value);
}

// A number with the digits that matter.
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  if (size >= 100) return value.toFixed(1);
  return size >= 0.001 || size === 0 ? value.toFixed(3) : value.toExponential(1);
}

// Those of these scores that a run has; a run of an older version has no ELBO but the one without noise.
export function known(scores, names) {
  return names.map((name) => (name === "elbo" && !(name in scores) ? "elbo_noiseless" : name)).filter((name) => name in scores);
}

export function valueOf(table, run, name) {
  return run.values[table.columns.findIndex((column) => column.name === name)] ?? null;
}

export function problem(error) {
  return h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error));
}

// A message in the page, in place of the one before.
export class Notice {
  constructor() {
    this.element = h("div", { "aria-live": "polite", class: "notice" });
  }
  say(error) {
    this.element.replaceChildren(problem(error));
  }
  clear() {
    this.element.replaceChildren();
  }
}

export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The top of a page about one run: its facts, and links to its other pages.
const HEADLINES = ["mig", "dci", "gap", "elbo"];

export function heading(run, view) {
  const links = [["model", "Model"], ["metrics", "Metrics"], ["compare", "Compare"]]
    .filter(([name]) => name !== view)
    .map(([name, title]) => h("a", { class: "button", href: `#/${name}/${run.token}` }, title));
  const scores = known(run.scores, HEADLINES).map((name) => h("li", {}, `${name} `, h("b", {}, shown(run.scores[name]))));
  const { model, dataset, seed, steps } = run.settings; // a broken run may have none
  const facts = model ? [`${model} on ${dataset}`, `seed ${seed}`, `${steps} steps`] : [];
  if (run.collapsed) facts.push("collapsed: no better than the mean image");
  return h(
    "div",
    { class: "heading" },
    h("div", {}, h("h1", {}, run.name), h("ul", { class: "facts" }, facts.map((fact) => h("li", {}, fact)), scores)),
    h("div", { class: "links" }, links),
  );
}
