// Runs as points, one score against another; the arrow keys go from point to point, Enter opens a run.
import { h, s, option, shown, valueOf } from "./dom.js";
import { frame, padded } from "./plot.js";

const HEIGHT = 330;

export class Scatter {
  constructor(table, open) {
    this.table = table;
    this.open = open;
    this.runs = [];
    this.numbers = table.columns.filter((column) => column.kind === "number").map((column) => column.name);
    const [across, up] = this.firstAxes();
    this.across = this.picker("Across", across);
    this.up = this.picker("Up", up);
    this.plot = h("div", { class: "plot" });
    this.legend = h("ul", { class: "legend" });
    this.note = h("p", { class: "quiet" });
    const controls = h("div", { class: "controls" }, h("label", {}, "Across ", this.across), h("label", {}, "Up ", this.up));
    this.element = h("section", { class: "card scatter", "aria-label": "Scatter" }, controls, this.plot, this.legend, this.note);
    this.element.hidden = !this.numbers.length;
  }

  // MIG, and the gap if all runs with a MIG have one; else the score that most of them have.
  firstAxes() {
    const scores = this.table.columns.filter((column) => column.score).map((column) => column.name);
    const up = scores.includes("mig") ? "mig" : scores[0];
    const count = (name) => this.table.runs.filter((run) => this.value(run, up) !== null && this.value(run, name) !== null).length;
    const others = [...new Set(["gap", "elbo", "elbo_noiseless", ...scores])].filter((name) => scores.includes(name) && name !== up);
    const most = Math.max(...others.map(count));
    return [others.find((name) => count(name) === most) ?? up, up];
  }

  picker(label, chosen) {
    const choices = this.numbers.map((name) => option(name, name, name === chosen));
    return h("select", { "aria-label": `${label} axis`, onchange: () => this.draw(this.runs) }, choices);
  }

  value(run, name) {
    return valueOf(this.table, run, name);
  }

  draw(runs) {
    this.runs = runs;
    const [x, y] = [this.across.value, this.up.value];
    const points = runs
      .map((run) => ({ run, x: this.value(run, x), y: this.value(run, y), model: this.value(run, "model") }))
      .filter((point) => typeof point.x === "number" && typeof point.y === "number")
      .sort((one, other) => one.x - other.x);
    const missing = runs.length - points.length;
    this.note.textContent = missing ? `${missing} of ${runs.length} runs have no ${x === y ? x : `${x} or ${y}`}.` : "";
    if (!points.length) {
      this.plot.replaceChildren(h("p", { class: "quiet" }, "No run here has both."));
      this.legend.replaceChildren();
      return;
    }
    this.drawPoints(points, x, y);
    this.drawLegend(points);
  }

  drawPoints(points, x, y) {
    const width = Math.max(320, Math.min(1100, this.plot.clientWidth || 800));
    const [xs, ys] = ["x", "y"].map((axis) => padded(points.map((point) => point[axis])));
    const about = { width, height: HEIGHT, xs, ys, xTitle: x, yTitle: y, label: `${y} against ${x}, ${points.length} runs` };
    const { chart, x: right, y: up } = frame(about);
    const marks = points.map((point, number) => this.mark(point, number, right(point.x), up(point.y), [x, y]));
    const chosen = this.chosen(points);
    const rings = points
      .filter((point) => chosen.has(point.run.token))
      .map((point) => s("circle", { cx: right(point.x), cy: up(point.y), r: 10, class: "chosen" }));
    chart.append(...rings, ...marks);
    chart.addEventListener("keydown", (event) => walk(event, marks));
    this.plot.replaceChildren(chart);
  }

  mark(point, number, cx, cy, [x, y]) {
    const title = `${point.run.name}: ${x} ${shown(point.x)}, ${y} ${shown(point.y)}`;
    const open = () => this.open(point.run);
    return s(
      "circle",
      {
        cx, cy, r: 5.5, fill: this.table.colours[point.model], class: "point", role: "link", "aria-label": title,
        tabindex: number ? -1 : 0, "data-token": point.run.token,
        onclick: open, onkeydown: (event) => event.key === "Enter" && open(),
      },
      s("title", {}, title),
    );
  }

  // The run with the smallest gap of each dataset: what the paper would select without labels.
  chosen(points) {
    const best = new Map();
    for (const { run } of points) {
      const [dataset, gap] = [this.value(run, "dataset"), this.value(run, "gap")];
      if (typeof gap === "number" && !(best.get(dataset)?.gap <= gap)) best.set(dataset, { gap, token: run.token });
    }
    return new Set([...best.values()].map((entry) => entry.token));
  }

  drawLegend(points) {
    const models = [...new Set(points.map((point) => point.model))].sort();
    const items = models.map((model) => {
      const dot = s("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": true });
      dot.append(s("circle", { cx: 6, cy: 6, r: 5, fill: this.table.colours[model], class: "point" }));
      return h("li", {}, dot, model);
    });
    const ring = s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": true });
    ring.append(s("circle", { cx: 8, cy: 8, r: 6.5, class: "chosen" }));
    if (this.chosen(points).size) items.push(h("li", {}, ring, "smallest gap of its dataset"));
    this.legend.replaceChildren(...items);
  }
}

function walk(event, marks) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const place = marks.indexOf(document.activeElement);
  if (!step || place < 0) return;
  event.preventDefault();
  const next = marks[(place + step + marks.length) % marks.length];
  marks[place].setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}
