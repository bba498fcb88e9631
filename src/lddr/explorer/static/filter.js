// What the filter understands: words, and conditions such as model=dvae or mig>0.3; all of them must hold.

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
export function parseFilter(text, columns) {
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
