// The top of a page about one run: what it is, and the way to its other pages.
import { h, known, shown } from "./dom.js";

const FIRST = ["mig", "dci", "gap", "elbo"];

export function heading(run, view) {
  const links = [["model", "Model"], ["metrics", "Metrics"], ["compare", "Compare"]]
    .filter(([name]) => name !== view)
    .map(([name, title]) => h("a", { class: "button", href: `#/${name}/${run.token}` }, title));
  const scores = known(run.scores, FIRST).map((name) => h("li", {}, `${name} `, h("b", {}, shown(run.scores[name]))));
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
