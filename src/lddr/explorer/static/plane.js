// The space of a model with two latents: where it puts a grid of its factors; point at a place and see its picture.
import * as api from "./api.js";
import { h, s } from "./dom.js";
import { canvas, draw } from "./pictures.js";
import { frame, padded, path } from "./plot.js";

const SIZE = 340;

export class Plane {
  constructor(token, fail) {
    Object.assign(this, { token, fail });
    this.picture = canvas("The picture at this place of the latent space");
    this.element = h("div", { class: "plane" });
    this.decode = api.latestOnly(async (values) => {
      try {
        await draw(this.picture, await api.decode(token, values));
      } catch (error) {
        fail(error);
      }
    });
  }

  async load() {
    const { codes, factors } = await api.about(this.token, "space");
    const flat = codes.flat();
    const [xs, ys] = [0, 1].map((axis) => padded(flat.map((code) => code[axis])));
    const about = { width: SIZE, height: SIZE, xs, ys, xTitle: "latent 0", yTitle: "latent 1", label: "Latent space: arrow keys move" };
    const { chart, x, y } = frame(about);
    const place = ([a, b]) => [x(a), y(b)];
    for (const row of codes) chart.append(s("path", { d: path(row.map(place)), class: "line second" }));
    for (const column of codes[0].keys()) chart.append(s("path", { d: path(codes.map((row) => place(row[column]))), class: "line first" }));
    this.dot = s("circle", { r: 6, class: "here" });
    chart.append(this.dot);
    chart.setAttribute("tabindex", 0);
    Object.assign(this, { chart, x, y, xs, ys });
    this.listen();
    const legend = h(
      "p",
      { class: "quiet" },
      h("span", { class: "key first" }, "—"), ` ${factors[0]} changes`, h("br"), h("span", { class: "key second" }, "—"), ` ${factors[1]} changes`,
    );
    this.element.replaceChildren(chart, h("div", {}, this.picture, legend));
  }

  listen() {
    const point = (event) => {
      const box = this.chart.getBoundingClientRect();
      const across = ((event.clientX - box.left) / box.width) * SIZE;
      const down = ((event.clientY - box.top) / box.height) * SIZE;
      this.move([inverse(this.x, this.xs, across), inverse(this.y, this.ys, down)]);
    };
    this.chart.addEventListener("pointerdown", (event) => (this.chart.setPointerCapture(event.pointerId), point(event)));
    this.chart.addEventListener("pointermove", (event) => event.buttons && point(event));
    this.chart.addEventListener("keydown", (event) => {
      const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!direction) return;
      event.preventDefault();
      const step = [(this.xs[1] - this.xs[0]) / 50, (this.ys[1] - this.ys[0]) / 50];
      this.move(this.values.map((value, axis) => value + direction[axis] * step[axis]));
    });
  }

  move(values) {
    this.values = [clamp(values[0], this.xs), clamp(values[1], this.ys)];
    this.dot.setAttribute("cx", this.x(this.values[0]));
    this.dot.setAttribute("cy", this.y(this.values[1]));
    return this.decode(this.values);
  }
}

function inverse(scaled, [low, high], pixels) {
  return low + ((pixels - scaled(low)) / (scaled(high) - scaled(low))) * (high - low);
}

function clamp(value, [low, high]) {
  return Math.min(Math.max(value, low), high);
}
