// All runs: a table to sort and filter, and a scatter of any number against any other, or a gallery of models.
import { listRuns } from "./api.js";
import { h, Notice, shown } from "./dom.js";
import { gallery } from "./gallery.js";
import { Scatter } from "./scatter.js";

const ROWS = 200; // drawn at first: more are a click away
const kept = { filter: "", sort: null, down: false, shown: null }; // while the page is open, for the way back

export async function showRuns(page, _tokens, signal) {
  const table = await listRuns();
  if (signal.aborted) return;
  if (!table.runs.length) {
    page.replaceChildren(h("p", { class: "quiet" }, `There are no runs in ${table.root} yet. Train one with: lddr train`));
    return;
  }
  for (const run of table.runs) run.text = [run.name, ...run.values.filter((value) => typeof value === "string")].join(" ").toLowerCase();
  new Runs(page, table, signal);
}

class Runs {
  constructor(page, table, signal) {
    Object.assign(this, { page, table, limit: ROWS, picked: new Set(), notice: new Notice() });
    this.filter = h("input", {
      type: "search", value: kept.filter, placeholder: "Filter: factor-dvae  mig>0.3  seed=1", "aria-label": "Filter runs",
      spellcheck: "false", autocomplete: "off", oninput: () => this.update(),
    });
    this.count = h("output", { class: "quiet", "aria-live": "polite" });
    this.compare = h("a", { class: "button", hidden: true }, "Compare");
    this.head = h("thead");
    this.body = h("tbody");
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.showAll() });
    this.scatter = new Scatter(table, (run) => open(run.token));
    const refresh = h("button", { type: "button", onclick: () => showRuns(page, [], signal) }, "Refresh");
    const bar = h("div", { class: "bar" }, this.filter, this.count, this.compare, this.columnPicker(), refresh);
    const scroller = h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Runs" }, h("table", { class: "runs" }, this.head, this.body));
    const list = [bar, this.notice.element, this.scatter.element, scroller, this.more];
    if (table.gallery) list.splice(2, 1); // a scatter of a few models shows nothing
    page.replaceChildren(h("h1", { class: "hidden" }, "Runs"), ...(table.gallery ? [gallery(table, signal), h("h2", {}, "Settings and scores")] : []), ...list);
    window.addEventListener("resize", () => this.scatter.draw(this.scatter.runs), { signal });
    this.update();
  }

  get columns() {
    const wanted = kept.shown ?? new Set(this.table.columns.filter((column) => column.shown).map((column) => column.name));
    return this.table.columns.map((column, place) => ({ ...column, place })).filter((column) => wanted.has(column.name));
  }

  columnPicker() {
    const boxes = this.table.columns.map((column) => {
      const box = h("input", { type: "checkbox", checked: this.columns.some(({ name }) => name === column.name), onchange: () => this.toggle(column.name) });
      return h("label", {}, box, " ", column.name);
    });
    return h("details", { class: "menu" }, h("summary", { class: "button" }, "Columns"), h("div", { class: "choices" }, boxes));
  }

  toggle(name) {
    const wanted = new Set(this.columns.map((column) => column.name));
    if (!wanted.delete(name)) wanted.add(name);
    kept.shown = wanted;
    this.update();
  }

  update() {
    kept.filter = this.filter.value;
    let wanted;
    try {
      wanted = parseFilter(kept.filter, this.table.columns);
      this.notice.clear();
      this.filter.removeAttribute("aria-invalid");
    } catch (error) {
      this.notice.say(error);
      this.filter.setAttribute("aria-invalid", "true");
      return;
    }
    this.found = this.table.runs.filter(wanted);
    const all = this.table.runs.length;
    this.count.textContent = this.found.length === all ? `${all} runs` : `${this.found.length} of ${all} runs`;
    this.scatter.draw(this.found);
    this.drawTable();
  }

  drawTable() {
    const columns = this.columns;
    const place = this.table.columns.findIndex((column) => column.name === kept.sort);
    const rows = place < 0 ? this.found : sorted(this.found, place, kept.down);
    this.head.replaceChildren(h("tr", {}, h("th", {}, h("span", { class: "hidden" }, "Compare")), columns.map((column) => this.heading(column))));
    this.body.replaceChildren(...rows.slice(0, this.limit).map((run) => this.row(run, columns)));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `Show all ${rows.length} runs`;
  }

  heading({ name, kind, score }) {
    const direction = kept.sort === name ? (kept.down ? "descending" : "ascending") : null;
    const arrow = h("span", { "aria-hidden": true }, { descending: "\u00a0↓", ascending: "\u00a0↑" }[direction] ?? "");
    const sort = () => {
      kept.down = kept.sort === name ? !kept.down : score;
      kept.sort = name;
      this.drawTable();
      this.head.querySelector(`[data-column="${CSS.escape(name)}"]`).focus();
    };
    return h("th", { "aria-sort": direction, class: kind }, h("button", { type: "button", onclick: sort, "data-column": name }, name, arrow));
  }

  row(run, columns) {
    const cells = columns.map(({ name, kind, place }) => {
      const text = shown(run.values[place]);
      const content = name === "run" ? h("a", { href: `#/model/${run.token}`, title: run.name }, text) : text;
      return h("td", { class: `${kind} ${name === "state" ? text : ""}`, title: name === "state" ? run.reason : null }, content);
    });
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, checked: this.picked.has(run.token), onchange: (event) => this.pick(run.token, event.target) });
    const go = (event) => event.target.closest("a, input, label") || open(run.token);
    return h("tr", { onclick: go, "data-token": run.token }, h("td", { class: "box" }, h("label", {}, box)), cells);
  }

  pick(token, box) {
    if (box.checked) this.picked.add(token);
    else this.picked.delete(token);
    if (this.picked.size > 2) this.picked.delete([...this.picked][0]);
    for (const row of this.body.rows) row.querySelector("input").checked = this.picked.has(row.dataset.token);
    this.compare.hidden = this.picked.size < 2;
    this.compare.setAttribute("href", `#/compare/${[...this.picked].join("/")}`);
  }

  showAll() {
    this.limit = Infinity;
    this.drawTable();
  }
}

function open(token) {
  location.hash = `#/model/${token}`;
}

// Numbers as numbers; what is missing comes last either way.
function sorted(runs, place, down) {
  const sign = down ? -1 : 1;
  return [...runs].sort((one, other) => {
    const [a, b] = [one.values[place], other.values[place]];
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
  });
}

// The filter: words, and conditions such as model=dvae or mig>0.3; all of them must hold.
const CONDITION = /^([^<>=!\s]+)(<=|>=|!=|==|=|<|>)(.+)$/;
const COMPARISONS = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};

// A function that says whether a run is wanted; an Error if a condition names no column.
function parseFilter(text, columns) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((part) => parsePart(part, columns));
  return (run) => tests.every((test) => test(run));
}

function parsePart(part, columns) {
  const match = CONDITION.exec(part);
  if (!match) return (run) => run.text.includes(part.toLowerCase());
  const [, name, comparison, wanted] = match;
  const place = columns.findIndex((column) => column.name === name);
  if (place < 0) throw new Error(`no run has a column “${name}”`);
  return (run) => holds(run.values[place], comparison, wanted);
}

// Numbers as numbers, words as words; what is missing is neither smaller nor larger.
function holds(value, comparison, wanted) {
  const number = Number(wanted);
  if (typeof value === "number" && !Number.isNaN(number)) return COMPARISONS[comparison](value, number);
  if (comparison.includes("<") || comparison.includes(">")) return false;
  return COMPARISONS[comparison](value === null ? "none" : String(value), wanted);
}
