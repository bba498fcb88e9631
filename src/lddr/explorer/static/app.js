// The four views and the way between them: #/runs, #/model/TOKEN, #/compare/TOKEN/TOKEN, #/metrics/TOKEN.
import { h, problem } from "./dom.js";
import { showCompare } from "./compare.js";
import { showMetrics } from "./metrics.js";
import { showModel } from "./model.js";
import { showRuns } from "./runs.js";

const VIEWS = {
  runs: { title: "Runs", show: showRuns },
  model: { title: "Model", show: showModel },
  compare: { title: "Compare", show: showCompare },
  metrics: { title: "Metrics", show: showMetrics },
};

const main = document.querySelector("main");
const nav = document.querySelector("nav");
let visit = new AbortController(); // ends when the view is left
let lastRun = null; // what Model, Compare and Metrics open from the menu

function parsed() {
  const [name, ...tokens] = location.hash.replace(/^#\/?/, "").split("/");
  return name in VIEWS ? { name, tokens: tokens.filter(Boolean) } : { name: "runs", tokens: [] };
}

function drawMenu(current) {
  const links = Object.entries(VIEWS).map(([name, view]) => {
    const run = name === "runs" || !lastRun ? "" : `/${lastRun}`;
    return h("a", { href: `#/${name}${run}`, "aria-current": name === current ? "page" : null }, view.title);
  });
  nav.replaceChildren(...links);
}

async function open() {
  visit.abort();
  visit = new AbortController();
  const { signal } = visit;
  const { name, tokens } = parsed();
  lastRun = tokens[0] ?? lastRun;
  drawMenu(name);
  document.title = `${VIEWS[name].title} · lddr explorer`;
  document.body.dataset.view = name;
  const page = h("div", { class: `view ${name}` }, h("p", { class: "quiet" }, "Loading…"));
  main.replaceChildren(page);
  try {
    if (name !== "runs" && name !== "compare" && !tokens.length) throw new Error("Choose a run first.");
    await VIEWS[name].show(page, tokens, signal);
  } catch (error) {
    if (!signal.aborted) page.replaceChildren(problem(error), h("p", {}, h("a", { href: "#/runs" }, "To the runs")));
  }
  if (!signal.aborted) page.dataset.ready = "yes";
}

window.addEventListener("hashchange", () => {
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  open();
});
open();
