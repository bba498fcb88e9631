// Two models side by side: the same image, the same traversal, and for two latents the whole space.
import * as api from "./api.js";
import { Chooser } from "./chooser.js";
import { h, known, Notice, option, shown, valueOf } from "./dom.js";
import { latentName } from "./latents.js";
import { blobOf, canvas, cut, draw } from "./pictures.js";
import { Plane } from "./plane.js";

const PICTURES = 10; // of a traversal

export async function showCompare(page, tokens, signal) {
  const table = await api.listRuns();
  const runs = table.runs.filter((run) => ["finished", "collapsed"].includes(valueOf(table, run, "state")));
  if (!runs.length) throw new Error("There is no finished run to compare.");
  const first = tokens[0] ?? (runs.find((run) => partner(run, runs, table).fits) ?? runs[0]).token;
  const second = tokens[1] ?? partner(runs.find((run) => run.token === first), runs, table).token;
  const sides = [first, second].map((token, place) => new Side(place, token, runs, (chosen) => go([first, second], place, chosen)));
  const top = h("div");
  page.replaceChildren(h("h1", { class: "hidden" }, "Compare"), top, h("div", { class: "sides" }, sides.map((side) => side.element)));
  await Promise.all(sides.map((side) => side.open()));
  if (signal.aborted) return;
  const works = sides.filter((side) => side.model);
  if (works.length) await new Comparison(top, works).start();
}

// The run to compare with another: on the same images, but with other latents, and of the same seed if there is one.
function partner(run, runs, table) {
  const same = (name, other) => valueOf(table, run, name) === valueOf(table, other, name);
  const merit = (other) => (other === run ? -1 : 4 * same("dataset", other) + 2 * !same("latent", other) + same("seed", other));
  const best = run ? runs.reduce((one, other) => (merit(other) > merit(one) ? other : one)) : runs[0];
  return { token: best.token, fits: run && merit(best) >= 6 };
}

function go(tokens, place, chosen) {
  location.hash = `#/compare/${tokens.with(place, chosen).join("/")}`;
}

// The controls of both models.
class Comparison {
  constructor(top, sides) {
    this.sides = sides;
    this.lead = sides.find((side) => side.model.dataset) ?? sides[0];
    this.chooser = new Chooser(this.lead.model.dataset, (choice) => this.look(choice), (error) => this.lead.notice.say(error));
    const names = [...new Set(sides.flatMap((side) => side.model.latents.flatMap((latent) => Object.keys(latent.shares))))];
    if (names.length) this.chooser.element.append(this.factorPicker(names));
    top.append(this.chooser.element);
  }

  factorPicker(names) {
    const follow = (event) => this.sides.forEach((side) => side.follow(event.target.value));
    return h("label", { class: "bar" }, "Traverse, in each model, the latent that encodes the most of ", h("select", { onchange: follow, "aria-label": "Factor" }, names.map((name) => option(name))));
  }

  async start() {
    const select = this.chooser.element.querySelector("select");
    if (select) for (const side of this.sides) side.follow(select.value);
    if (this.lead.model.dataset) await this.chooser.choose({ index: this.lead.model.start });
  }

  // The lead sees the choice; the others the same one, or the lead's picture if their images are not the same.
  async look(choice) {
    const seen = await this.lead.look(choice);
    for (const side of this.sides.filter((other) => other !== this.lead)) {
      const same = choice instanceof Blob || alike(side.model.dataset, this.lead.model.dataset);
      try {
        await side.look(same ? choice : await blobOf(seen.picture));
      } catch (error) {
        side.notice.say(error);
      }
    }
    return seen;
  }
}

function alike(one, other) {
  return one && other && one.name === other.name && one.size === other.size;
}

class Side {
  constructor(place, token, runs, choose) {
    Object.assign(this, { token, model: null, seen: null });
    this.notice = new Notice();
    const choices = runs.map((run) => option(run.token, run.name, run.token === token));
    const picker = h("select", { "aria-label": `${place ? "Second" : "First"} run`, onchange: (event) => choose(event.target.value) }, choices);
    this.facts = h("p", { class: "quiet" });
    this.original = canvas("The image");
    this.result = canvas("Reconstruction");
    this.latents = h("select", { "aria-label": "Latent to traverse", onchange: () => this.drawStrip() });
    this.strip = h("div", { class: "strip plain" });
    this.space = h("div");
    const pictures = h("div", { class: "pictures" }, h("figure", {}, this.original, h("figcaption", {}, "Image")), h("figure", {}, this.result, h("figcaption", {}, "Reconstruction")));
    this.content = h("div", {}, pictures, h("label", { class: "bar" }, "Traverse ", this.latents), this.strip, this.space);
    this.element = h("section", { class: "card side" }, picker, this.facts, this.notice.element, this.content);
    this.drawStrip = api.latestOnly(() => this.drawNow());
  }

  async open() {
    try {
      const run = await api.about(this.token);
      this.facts.replaceChildren(...known(run.scores, ["mig", "gap", "elbo"]).flatMap((name) => [`${name} `, h("b", {}, shown(run.scores[name])), "  "]));
      this.model = await api.about(this.token, "model");
      this.latents.append(...this.model.latents.map((latent) => option(latent.number, latentName(latent))));
      if (this.model.latents.length === 2 && this.model.dataset?.factors.length > 1) await this.openPlane();
    } catch (error) {
      this.notice.say(error);
      this.content.hidden = !this.model;
    }
  }

  async openPlane() {
    const plane = new Plane(this.token, (error) => this.notice.say(error));
    await plane.load();
    this.space.append(h("h3", {}, "Latent space"), plane.element);
    this.plane = plane;
  }

  follow(factor) {
    const best = this.model.latents.reduce((one, other) => ((other.shares[factor] ?? 0) > (one.shares[factor] ?? 0) ? other : one));
    this.latents.value = best.number;
    if (this.seen) this.drawStrip();
  }

  async look(choice) {
    this.seen = await api.encode(this.token, choice);
    this.notice.clear();
    await Promise.all([draw(this.original, this.seen.picture), draw(this.result, this.seen.reconstruction), this.drawStrip()]);
    await this.plane?.move(this.seen.values);
    return this.seen;
  }

  async drawNow() {
    const number = Number(this.latents.value);
    const { values } = this.model.latents.find((latent) => latent.number === number);
    try {
      const strip = await api.traverse(this.token, this.seen.values, number, PICTURES);
      this.strip.replaceChildren(...(await cut(strip, Math.min(PICTURES, values.length))));
    } catch (error) {
      this.notice.say(error);
    }
  }
}
