// One run in numbers: scores, which latent encodes which factor, the training curves, reconstructions.
import * as api from "./api.js";
import { h, heading, Notice, problem, shown } from "./dom.js";
import { cut } from "./pictures.js";
import { curve } from "./plot.js";

const AGAIN = 2000; // milliseconds between two updates of a run that trains
const PICTURES = 10;

export async function showMetrics(page, [token], signal) {
  const run = await api.about(token);
  if (signal.aborted) return;
  const notice = new Notice();
  if (run.state === "broken") notice.say(`this run is broken: ${run.reason}`);
  const curves = h("section", { class: "card curves", "aria-label": "Training" });
  const scores = h("div");
  const pictures = h("section", { class: "card", "aria-label": "Reconstructions" }, h("h2", {}, "Reconstructions"));
  page.replaceChildren(heading(run, "metrics"), notice.element, scores, curves, pictures);
  await Promise.all([
    fill(scores, async () => drawScores(scores, await api.about(token, "scores"))),
    watch(curves, token, run.state, signal, () => showMetrics(page, [token], signal)),
    run.opens ? fill(pictures, () => drawPictures(pictures, token)) : pictures.remove(),
  ]);
}

async function fill(section, work) {
  try {
    await work();
  } catch (error) {
    section.append(problem(error));
  }
}

function drawScores(section, { training, metrics, information, unnamed }) {
  const rows = [
    ...metrics.map(({ name, score, reason, details }) => [name, score, reason, details]),
    ...Object.entries(training).map(([name, score]) => [name, score, null, {}]),
  ];
  const table = h("table", { class: "scores" }, h("tbody", {}, rows.map(scoreRow)));
  const cards = [h("section", { class: "card", "aria-label": "Scores" }, h("h2", {}, "Scores"), rows.length ? table : h("p", { class: "quiet" }, "None yet."))];
  if (information) cards.push(heatMap(information));
  else if (unnamed) cards.push(h("section", { class: "card" }, h("h2", {}, "Mutual information"), h("p", { class: "quiet" }, `${unnamed}.`)));
  section.className = "halves";
  section.replaceChildren(...cards);
}

function scoreRow([name, score, reason, details]) {
  const more = Object.entries(details).map(([key, value]) => h("li", {}, `${key} ${shown(value)}`));
  const value = score === null || score === undefined ? h("span", { class: "quiet" }, reason ?? "–") : h("b", {}, shown(score));
  const about = more.length ? h("details", {}, h("summary", {}, name), h("ul", {}, more)) : name;
  return h("tr", {}, h("th", { scope: "row" }, about), h("td", {}, value));
}

// Latents by factors; the darker, the more of the factor's entropy the latent encodes.
function heatMap({ factors, matrix, shares }) {
  const head = h("tr", {}, h("td"), factors.map((factor) => h("th", { scope: "col" }, factor)));
  const rows = matrix.map((row, latent) => h("tr", {}, h("th", { scope: "row" }, `latent ${latent}`), row.map((value, factor) => heatCell(value, shares[latent][factor]))));
  return h(
    "section",
    { class: "card", "aria-label": "Mutual information" },
    h("h2", {}, "Mutual information"),
    h("p", { class: "quiet" }, "In nats; the stronger the colour, the larger the share of the factor’s entropy."),
    h("div", { class: "scroller" }, h("table", { class: "heat" }, h("thead", {}, head), h("tbody", {}, rows))),
  );
}

function heatCell(value, share) {
  const cell = h("td", { title: `${Math.round(share * 100)} % of the entropy` }, value.toFixed(2));
  cell.style.setProperty("--share", Math.min(1, Math.max(0, share)));
  if (share > 0.85) cell.className = "strong";
  return cell;
}

// Curves, drawn again and again while the run trains.
async function watch(section, token, state, signal, finished) {
  let log;
  try {
    log = await api.about(token, "log");
  } catch (error) {
    if (!signal.aborted) section.replaceChildren(h("h2", {}, "Training"), problem(error));
    return;
  }
  if (signal.aborted) return;
  if (state === "training" && log.state === "finished") return finished();
  const terms = Object.entries(log.terms).filter(([, points]) => points.length);
  const figures = terms.map(([name, points]) => h("figure", {}, h("figcaption", {}, `${name} `, h("b", {}, shown(points.at(-1)[1]))), curve(name, points)));
  const progress = log.state === "training" ? [h("progress", { value: log.step, max: log.steps || 1 }), ` step ${log.step} of ${log.steps}`] : [];
  const empty = h("p", { class: "quiet" }, log.state === "training" ? "No line of the log yet." : "Nothing was logged.");
  section.replaceChildren(h("h2", {}, "Training"), h("p", { class: "quiet" }, ...progress), h("div", { class: "figures" }, figures.length ? figures : empty));
  if (log.state === "training") setTimeout(() => signal.aborted || watch(section, token, log.state, signal, finished), AGAIN);
}

async function drawPictures(section, token) {
  const pieces = await cut(await api.picture(token, "reconstructions"), PICTURES, 2);
  const pairs = pieces.slice(0, PICTURES).map((piece, place) => h("div", { class: "pair" }, piece, pieces[PICTURES + place]));
  section.append(h("p", { class: "quiet" }, "Images above, reconstructions below."), h("div", { class: "strip plain", role: "img", "aria-label": "Images and their reconstructions" }, pairs));
}
