// One model: an image, its reconstruction, and a slider for each latent.
import * as api from "./api.js";
import { Chooser } from "./chooser.js";
import { download, h, heading, Notice } from "./dom.js";
import { LatentRow } from "./latents.js";
import { asBlob, canvas, cut, draw } from "./pictures.js";

export async function showModel(page, [token], signal) {
  const run = await api.about(token);
  if (signal.aborted) return;
  page.replaceChildren(heading(run, "model"), h("p", { class: "quiet" }, "Opening the model…"));
  const notice = new Notice();
  let model;
  try {
    if (!run.opens && run.state === "training") throw new Error("this run has no model yet: it is training or was stopped; see its metrics");
    model = await api.about(token, "model");
  } catch (error) {
    notice.say(error);
    page.replaceChildren(heading(run, "model"), notice.element);
    return;
  }
  if (signal.aborted) return;
  await new ModelPage(page, run, model, notice).start();
}

class ModelPage {
  constructor(page, run, model, notice) {
    Object.assign(this, { page, run, model, notice, seen: null, looks: 0 });
    this.original = canvas("The image");
    this.result = canvas("What the model draws");
    this.caption = h("figcaption", {}, "Reconstruction");
    const moved = () => this.redraw();
    this.rows = model.latents.map((latent) => new LatentRow(latent, { moved, traverse: (row) => this.toggle(row) }));
    this.redraw = api.latestOnly(() => this.drawNow());
    this.redrawStrips = api.latestOnly(() => this.drawStrips());
    this.chooser = new Chooser(model.dataset, (choice) => this.look(choice), (error) => notice.say(error));
    page.replaceChildren(heading(run, "model"), notice.element, h("div", { class: "split" }, this.left(), this.right()));
  }

  left() {
    const pictures = h(
      "div",
      { class: "pictures" },
      h("figure", {}, this.original, h("figcaption", {}, "Image")),
      h("figure", {}, this.result, this.caption),
    );
    return h("div", { class: "left" }, h("section", { class: "card" }, pictures), this.chooser.element);
  }

  buttons() {
    const all = (change) => () => {
      for (const row of this.rows) change(row);
      this.redraw();
    };
    return [
      h("button", { type: "button", onclick: all((row) => row.reset()), title: "Set all latents to the code of the image" }, "Reset"),
      this.rows.some((row) => row.dial.rounds) && h("button", { type: "button", onclick: all((row) => row.round()), title: "Every latent to its most probable category" }, "Round"),
      h("button", { type: "button", onclick: all((row) => row.random()), title: "Sample every latent from the prior" }, "Random"),
      h("button", { type: "button", onclick: () => this.savePicture() }, "Save picture"),
      h("button", { type: "button", onclick: () => this.saveSettings() }, "Save settings"),
    ];
  }

  right() {
    const notes = [this.model.unnamed && `Latents are numbered, not named: ${this.model.unnamed}.`];
    if (this.model.dataset?.are_samples) notes.push("The images are samples that were shared with the model.");
    if (this.model.problem) notes.push(`The images of this run are not here: ${this.model.problem}`);
    const legends = [...new Set(this.rows.map((row) => row.dial.legend))].join(" ");
    return h(
      "section",
      { class: "card", "aria-label": "Latents" },
      h("div", { class: "bar latent-heading" }, h("h2", {}, "Latents"), this.buttons()),
      h("p", { class: "quiet" }, `${legends} Move a slider and the picture follows. The most informative latents come first.`),
      notes.filter(Boolean).map((note) => h("p", { class: "quiet" }, note)),
      h("ul", { class: "latents" }, this.rows.map((row) => row.element)),
    );
  }

  async start() {
    if (this.model.dataset) await this.chooser.choose({ index: this.model.start });
    else await this.redraw();
  }

  // Let the model see an image; gives the answer to the chooser.
  async look(choice) {
    this.looks += 1;
    const seen = await api.encode(this.run.token, choice);
    this.looks += 1;
    this.notice.clear();
    this.seen = seen;
    for (const row of this.rows) row.see(seen);
    await Promise.all([draw(this.original, seen.picture), draw(this.result, seen.reconstruction)]);
    this.updateCaption();
    this.redrawStrips();
    return seen;
  }

  get values() {
    const values = new Array(this.rows.length);
    for (const row of this.rows) values[row.latent.number] = row.value;
    return values;
  }

  async drawNow() {
    const { looks } = this;
    try {
      const picture = await api.decode(this.run.token, this.values);
      if (looks !== this.looks) return; // another image has come or is on its way: this picture is out of date
      await draw(this.result, picture);
      this.updateCaption();
      this.notice.clear();
      this.redrawStrips(); // not awaited
    } catch (error) {
      this.notice.say(error);
    }
  }

  updateCaption() {
    const moved = this.rows.filter((row) => row.place !== null).length;
    this.caption.textContent = moved ? `Drawn with ${moved} latent${moved > 1 ? "s" : ""} moved` : "Reconstruction";
    this.result.dataset.drawn = Number(this.result.dataset.drawn ?? 0) + 1;
  }

  async toggle(row) {
    if (!row.strip.hidden) return row.open(false);
    row.open(true);
    return this.drawStrip(row);
  }

  // Strips that are open follow the other latents.
  async drawStrips() {
    const open = this.rows.filter((row) => !row.strip.hidden && row.slider !== document.activeElement);
    for (const row of open) await this.drawStrip(row);
  }

  async drawStrip(row) {
    const others = () => String(this.values.with(row.latent.number, 0));
    const before = others();
    try {
      const pieces = await cut(await api.traverse(this.run.token, this.values, row.latent.number), row.latent.values.length);
      if (before === others()) row.show(pieces);
    } catch (error) {
      this.notice.say(error);
    }
  }

  async savePicture() {
    download(await asBlob(this.result), `${this.run.name}.png`);
  }

  saveSettings() {
    const latents = this.rows.map(({ latent, value, category }) => ({ latent: latent.number, factor: latent.factor, value, category }));
    const content = { run: this.run.name, image: this.seen?.index ?? null, factors: this.seen?.factors ?? null, latents, values: this.values };
    download(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }), `${this.run.name}.json`);
  }
}
