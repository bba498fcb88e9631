// Sort a table by a click on a heading: numbers largest first, words from A to Z, then the other way round; empty cells last.
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const place = [...heading.parentElement.children].indexOf(heading);
    const body = heading.closest("table").tBodies[0];
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
    const empty = (row) => row.cells[place].classList.contains("empty");
    const rows = [...body.rows].filter((row) => !empty(row));
    const numeric = rows.every((row) => key(row) !== "" && Number.isFinite(Number(key(row))));
    const before = heading.getAttribute("aria-sort");
    const descending = before === "none" ? numeric : before === "ascending";
    const order = (a, b) => (numeric ? key(a) - key(b) : key(a).localeCompare(key(b), "en", { numeric: true }));
    rows.sort((a, b) => (descending ? order(b, a) : order(a, b)));
    for (const other of heading.parentElement.children) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    body.append(...rows, ...[...body.rows].filter(empty));
  });
}
// Show a picture at its full size inside its frame, and back.
for (const picture of document.querySelectorAll("button.picture")) {
  picture.addEventListener("click", () => {
    picture.setAttribute("aria-pressed", picture.getAttribute("aria-pressed") !== "true");
  });
}
