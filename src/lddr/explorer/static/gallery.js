// A gallery of models: a card each, with an image, its reconstruction, and a traversal of every latent.
import * as api from "./api.js";
import { h, problem, shown, valueOf } from "./dom.js";
import { latentName } from "./latents.js";
import { canvas, cut, draw } from "./pictures.js";

const VALUES = 8; // pictures of a traversal

export function gallery(table, signal) {
  const cards = table.runs.map((run) => {
    const [model, dataset, mig] = ["model", "dataset", "mig"].map((name) => valueOf(table, run, name));
    const rows = h("div", { class: "rows" }, h("p", { class: "quiet" }, "Opening the model…"));
    const element = h(
      "article",
      { class: "card model-card", "data-token": run.token },
      h("h2", {}, run.name),
      h("p", {}, `${model} on ${dataset}`, mig === null ? "" : ` · MIG ${shown(mig)}`),
      run.about ? h("p", { class: "quiet" }, run.about) : null,
      rows,
      h("div", { class: "links" }, h("a", { class: "button main", href: `#/model/${run.token}` }, "Open"), h("a", { class: "button", href: `#/metrics/${run.token}` }, "Metrics"), h("a", { class: "button", href: `#/compare/${run.token}` }, "Compare")),
    );
    return { element, fill: () => fill(rows, run.token) };
  });
  fillAll(cards, signal);
  return h("section", { class: "gallery", "aria-label": "Models" }, cards.map((card) => card.element));
}

// One after the other: each model is computed by the same processor.
async function fillAll(cards, signal) {
  for (const card of cards) if (!signal.aborted) await card.fill();
}

async function fill(rows, token) {
  try {
    const model = await api.about(token, "model");
    const strips = [];
    let values = new Array(model.latents.length).fill(0); // the middle of every latent
    if (model.dataset) {
      const seen = await api.encode(token, { index: model.start });
      const pictures = [canvas("The image"), canvas("Its reconstruction")];
      await Promise.all([draw(pictures[0], seen.picture), draw(pictures[1], seen.reconstruction)]);
      strips.push(row("input, reconstruction", pictures));
      ({ values } = seen);
    } else {
      strips.push(h("p", { class: "quiet" }, `The traversals start from the middle of all latents. The images of this run are not here: ${model.problem}`));
    }
    for (const latent of byFactor(model)) {
      const count = Math.min(VALUES, latent.values.length);
      const strip = await cut(await api.traverse(token, values, latent.number, count), count);
      strips.push(row(latent.factor ? `${latent.factor} ${latent.share.toFixed(2)}` : latentName(latent), strip));
    }
    rows.replaceChildren(...strips);
  } catch (error) {
    rows.replaceChildren(problem(error));
  }
}

// The active latents, those of one factor together, and those without a factor last.
function byFactor({ latents, dataset }) {
  const names = [...(dataset?.factors ?? []).map((factor) => factor.name), null];
  return latents.filter((latent) => latent.active).sort((one, other) => names.indexOf(one.factor) - names.indexOf(other.factor));
}

function row(title, pictures) {
  return h("div", { class: "traversal" }, h("span", {}, title.replaceAll("_", " ")), h("div", { class: "strip plain" }, pictures));
}
