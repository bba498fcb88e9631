// Axes and lines in SVG.
import { s, shown } from "./dom.js";

export function extent(values) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  return [low, high];
}

// A little more than the values need.
export function padded(values, share = 0.06) {
  const [low, high] = extent(values);
  const margin = (high - low) * share;
  return [low - margin, high + margin];
}

// Round numbers that cover a range.
export function ticks(low, high, count = 5) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let number = first; number * step <= high + step * 1e-9; number += 1) found.push(Number((number * step).toPrecision(12)));
  return found;
}

export function scale([low, high], [start, end]) {
  return (value) => start + ((value - low) / (high - low)) * (end - start);
}

function short(value) {
  if (Math.abs(value) >= 10_000) return `${Number((value / 1000).toPrecision(4))}k`;
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}

// A frame with labelled axes; gives the SVG and the two scales.
export function frame({ width, height, xs, ys, xTitle, yTitle, label }) {
  const [left, right, top, bottom] = [54, 14, 12, xTitle ? 42 : 26];
  const x = scale(xs, [left, width - right]);
  const y = scale(ys, [height - bottom, top]);
  const chart = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label, class: "chart" });
  for (const tick of ticks(...xs, Math.max(2, width / 80))) {
    chart.append(s("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "grid" }));
    chart.append(s("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, short(tick)));
  }
  for (const tick of ticks(...ys, Math.max(2, height / 40))) {
    chart.append(s("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }));
    chart.append(s("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  if (xTitle) chart.append(s("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", class: "title" }, xTitle));
  if (yTitle) {
    const middle = (top + height - bottom) / 2;
    const rotation = `rotate(-90 13 ${middle})`;
    chart.append(s("text", { x: 13, y: middle, transform: rotation, "text-anchor": "middle", class: "title" }, yTitle));
  }
  const [wide, high] = [width - left - right, height - top - bottom];
  const inside = s("svg", { x: left, y: top, width: wide, height: high, viewBox: `${left} ${top} ${wide} ${high}` }); // cuts off the rest
  return { chart, inside, x, y };
}

export function path(points) {
  return points.map(([x, y], number) => `${number ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
}

// One curve with its last value; how high it starts does not decide the scale.
export function curve(title, points, width = 320, height = 170) {
  const xs = extent([0, ...points.map(([step]) => step)]);
  const ys = padded(points.slice(Math.floor(points.length / 20)).map(([, value]) => value));
  const { chart, inside, x, y } = frame({ width, height, xs, ys, label: `${title} by step` });
  inside.append(s("path", { d: path(points.map(([step, value]) => [x(step), y(value)])), class: "curve" }));
  chart.append(inside);
  const [step, value] = points.at(-1);
  chart.append(s("circle", { cx: x(step), cy: y(value), r: 3, class: "end" }, s("title", {}, shown(value))));
  return chart;
}
