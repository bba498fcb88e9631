// Choose an image: by number, at random, by its factors, or from a file.
import { latestOnly } from "./api.js";
import { h } from "./dom.js";

const LARGEST = 5_000_000;
const TYPES = ["image/png", "image/jpeg", "image/webp", "image/bmp"];

export class Chooser {
  // `choose` gets {index}, {factors} or a Blob and gives the answer of the server; `fail` gets an Error.
  constructor(dataset, choose, fail) {
    this.dataset = dataset;
    this.fail = fail;
    this.choose = latestOnly(async (choice) => {
      try {
        this.set(await choose(choice));
      } catch (error) {
        fail(error);
      }
    });
    this.element = h("section", { class: "card chooser", "aria-label": "Image" });
    if (dataset) this.element.append(this.numbers());
    this.element.append(this.files());
    this.sliders = [];
    if (dataset?.factors.length) this.element.append(this.factors());
  }

  numbers() {
    const { size } = this.dataset;
    this.number = h("input", { type: "number", min: 0, max: size - 1, value: 0, "aria-label": "Number of the image", onchange: () => this.byNumber() });
    const step = (by) => {
      this.number.value = (Number(this.number.value) + by + size) % size;
      this.byNumber();
    };
    return h(
      "div",
      { class: "bar" },
      h("button", { type: "button", "aria-label": "Previous image", onclick: () => step(-1) }, "‹"),
      this.number,
      h("button", { type: "button", "aria-label": "Next image", onclick: () => step(1) }, "›"),
      h("button", { type: "button", onclick: () => this.random() }, "Random image"),
      h("span", { class: "quiet" }, `of ${size.toLocaleString("en")}`),
    );
  }

  byNumber() {
    this.choose({ index: Math.min(Math.max(Math.trunc(Number(this.number.value)) || 0, 0), this.dataset.size - 1) });
  }

  random() {
    return this.choose({ index: Math.floor(Math.random() * this.dataset.size) });
  }

  files() {
    const input = h("input", { type: "file", accept: TYPES.join(","), onchange: () => this.upload(input) });
    return h("label", { class: "upload" }, h("span", {}, "Upload a picture "), input);
  }

  upload(input) {
    const file = input.files[0];
    input.value = ""; // so that the same file can be chosen again
    if (!file) return;
    if (file.size > LARGEST) this.fail(new Error("this file is too large; the limit is 5 MB"));
    else if (!TYPES.includes(file.type)) this.fail(new Error("this file is not a readable picture; send a PNG, JPEG, WebP or BMP file"));
    else this.choose(file);
  }

  factors() {
    this.sliders = this.dataset.factors.map((factor) => this.slider(factor));
    const rows = this.sliders.map(({ row }) => row);
    return h("details", { open: true, class: "factors" }, h("summary", {}, "Choose by factors"), rows);
  }

  slider({ name, size, labels }) {
    const output = h("output");
    const input = h("input", { type: "range", min: 0, max: size - 1, step: 1, "aria-label": name });
    const show = (isKnown = true) => {
      const label = isKnown ? (labels[Number(input.value)] ?? input.value) : "unknown";
      output.textContent = label;
      input.setAttribute("aria-valuetext", label);
    };
    input.addEventListener("input", () => {
      show();
      this.choose({ factors: this.sliders.map((slider) => Number(slider.input.value)) });
    });
    return { input, show, row: h("label", { class: "factor" }, h("span", {}, name), input, output) };
  }

  // Show which image it is now; a slider that is being moved shows it already. A factor that is null is not labelled.
  set({ index, factors }) {
    if (index !== null && this.number) this.number.value = index;
    this.sliders.forEach(({ input, show }, place) => {
      const isKnown = factors?.[place] !== null;
      if (factors && isKnown && document.activeElement !== input) input.value = factors[place];
      show(isKnown);
    });
  }
}
